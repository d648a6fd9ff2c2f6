"""The columns of the catalogs of PostgreSQL, as far as clients read them.

Each line begins with the name of a table; columns have a letter for their type: `o` an oid, `i` a whole number, `t` a
text, `b` a flag, `f` a float, `a` and `x` lists of numbers and texts.
"""

from collections.abc import Mapping


def _tables(text: str) -> Mapping[str, str]:
    """By schema and name of a table its columns."""
    lines = text.strip().replace("\n    ", " ").splitlines()
    return {name: columns for name, _, columns in (line.partition(" ") for line in lines)}


FILLED = _tables("""
pg_catalog.pg_namespace oid:o nspname:t nspowner:o nspacl:x
pg_catalog.pg_class oid:o relname:t relnamespace:o reltype:o reloftype:o relowner:o relam:o relfilenode:o
    reltablespace:o relpages:i reltuples:f relallvisible:i reltoastrelid:o relhasindex:b relisshared:b
    relpersistence:t relkind:t relnatts:i relchecks:i relhasrules:b relhastriggers:b relhassubclass:b
    relrowsecurity:b relforcerowsecurity:b relispopulated:b relreplident:t relispartition:b relrewrite:o
    relfrozenxid:i relminmxid:i relacl:x reloptions:x relpartbound:t relhasoids:b
pg_catalog.pg_attribute attrelid:o attname:t atttypid:o attlen:i attnum:i attcacheoff:i atttypmod:i attndims:i
    attbyval:b attalign:t attstorage:t attcompression:t attnotnull:b atthasdef:b atthasmissing:b attidentity:t
    attgenerated:t attisdropped:b attislocal:b attinhcount:i attstattarget:i attcollation:o attacl:x attoptions:x
    attfdwoptions:x
pg_catalog.pg_type oid:o typname:t typnamespace:o typowner:o typlen:i typbyval:b typtype:t typcategory:t
    typispreferred:b typisdefined:b typdelim:t typrelid:o typsubscript:t typelem:o typarray:o typinput:t typoutput:t
    typreceive:t typsend:t typmodin:t typmodout:t typalign:t typstorage:t typnotnull:b typbasetype:o typtypmod:i
    typndims:i typcollation:o typdefault:t typacl:x
pg_catalog.pg_index indexrelid:o indrelid:o indnatts:i indnkeyatts:i indisunique:b indnullsnotdistinct:b
    indisprimary:b indisexclusion:b indimmediate:b indisclustered:b indisvalid:b indcheckxmin:b indisready:b
    indislive:b indisreplident:b indkey:a indcollation:a indclass:a indoption:a indexprs:t indpred:t
pg_catalog.pg_constraint oid:o conname:t connamespace:o contype:t condeferrable:b condeferred:b convalidated:b
    conrelid:o contypid:o conindid:o conparentid:o confrelid:o confupdtype:t confdeltype:t confmatchtype:t
    conislocal:b coninhcount:i connoinherit:b conkey:a confkey:a conpfeqop:a conbin:t
pg_catalog.pg_description objoid:o classoid:o objsubid:i description:t
pg_catalog.pg_database oid:o datname:t datdba:o encoding:i datlocprovider:t datistemplate:b datallowconn:b
    datconnlimit:i datcollate:t datctype:t daticulocale:t daticurules:t datcollversion:t dattablespace:o datacl:x
pg_catalog.pg_roles oid:o rolname:t rolsuper:b rolinherit:b rolcreaterole:b rolcreatedb:b rolcanlogin:b
    rolreplication:b rolconnlimit:i rolpassword:t rolvaliduntil:t rolbypassrls:b rolconfig:x
pg_catalog.pg_user usename:t usesysid:o usecreatedb:b usesuper:b userepl:b usebypassrls:b passwd:t
pg_catalog.pg_am oid:o amname:t amhandler:t amtype:t
pg_catalog.pg_settings name:t setting:t unit:t category:t short_desc:t extra_desc:t context:t vartype:t source:t
    min_val:t max_val:t enumvals:x boot_val:t reset_val:t sourcefile:t sourceline:i pending_restart:b
pg_catalog.pg_cursors name:t statement:t is_holdable:b is_binary:b is_scrollable:b
pg_catalog.pg_tables schemaname:t tablename:t tableowner:t tablespace:t hasindexes:b hasrules:b hastriggers:b
    rowsecurity:b
pg_catalog.pg_collation oid:o collname:t collnamespace:o collowner:o collprovider:t collisdeterministic:b
    collencoding:i collcollate:t
information_schema.schemata catalog_name:t schema_name:t schema_owner:t default_character_set_catalog:t
    default_character_set_schema:t default_character_set_name:t sql_path:t
information_schema.tables table_catalog:t table_schema:t table_name:t table_type:t self_referencing_column_name:t
    reference_generation:t user_defined_type_catalog:t user_defined_type_schema:t user_defined_type_name:t
    is_insertable_into:t is_typed:t commit_action:t
information_schema.columns table_catalog:t table_schema:t table_name:t column_name:t ordinal_position:i
    column_default:t is_nullable:t data_type:t character_maximum_length:i character_octet_length:i
    numeric_precision:i numeric_precision_radix:i numeric_scale:i datetime_precision:i interval_type:t
    interval_precision:i character_set_name:t collation_name:t domain_name:t udt_catalog:t udt_schema:t udt_name:t
    scope_name:t maximum_cardinality:i dtd_identifier:t is_self_referencing:t is_identity:t identity_generation:t
    is_generated:t generation_expression:t is_updatable:t
information_schema.table_constraints constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t
    table_schema:t table_name:t constraint_type:t is_deferrable:t initially_deferred:t enforced:t
information_schema.key_column_usage constraint_catalog:t constraint_schema:t constraint_name:t table_catalog:t
    table_schema:t table_name:t column_name:t ordinal_position:i position_in_unique_constraint:i
information_schema.table_privileges grantor:t grantee:t table_catalog:t table_schema:t table_name:t privilege_type:t
    is_grantable:t with_hierarchy:t
""")
"""Tables that have rows."""
EMPTY = _tables("""
pg_catalog.pg_attrdef oid:o adrelid:o adnum:i adbin:t
pg_catalog.pg_auth_members oid:o roleid:o member:o grantor:o admin_option:b
pg_catalog.pg_available_extensions name:t default_version:t installed_version:t comment:t
pg_catalog.pg_cast oid:o castsource:o casttarget:o castfunc:o castcontext:t castmethod:t
pg_catalog.pg_conversion oid:o conname:t connamespace:o conowner:o
pg_catalog.pg_depend classid:o objid:o objsubid:i refclassid:o refobjid:o refobjsubid:i deptype:t
pg_catalog.pg_enum oid:o enumtypid:o enumsortorder:f enumlabel:t
pg_catalog.pg_event_trigger oid:o evtname:t evtevent:t evtowner:o evtenabled:t
pg_catalog.pg_extension oid:o extname:t extowner:o extnamespace:o extrelocatable:b extversion:t
pg_catalog.pg_foreign_data_wrapper oid:o fdwname:t fdwowner:o fdwhandler:o fdwoptions:x
pg_catalog.pg_foreign_server oid:o srvname:t srvowner:o srvfdw:o srvtype:t srvversion:t srvoptions:x
pg_catalog.pg_foreign_table ftrelid:o ftserver:o ftoptions:x
pg_catalog.pg_indexes schemaname:t tablename:t indexname:t tablespace:t indexdef:t
pg_catalog.pg_inherits inhrelid:o inhparent:o inhseqno:i inhdetachpending:b
pg_catalog.pg_language oid:o lanname:t lanowner:o lanispl:b lanpltrusted:b
pg_catalog.pg_locks locktype:t database:o relation:o pid:i mode:t granted:b transactionid:i
pg_catalog.pg_matviews schemaname:t matviewname:t matviewowner:t tablespace:t hasindexes:b ispopulated:b
    definition:t
pg_catalog.pg_opclass oid:o opcmethod:o opcname:t opcnamespace:o opcowner:o opcintype:o opcdefault:b
pg_catalog.pg_operator oid:o oprname:t oprnamespace:o oprleft:o oprright:o oprresult:o
pg_catalog.pg_partitioned_table partrelid:o partstrat:t partnatts:i partdefid:o partattrs:a
pg_catalog.pg_policy oid:o polname:t polrelid:o polcmd:t polpermissive:b polroles:a polqual:t polwithcheck:t
pg_catalog.pg_policies schemaname:t tablename:t policyname:t permissive:t roles:x cmd:t qual:t with_check:t
pg_catalog.pg_proc oid:o proname:t pronamespace:o proowner:o prolang:o procost:f prorows:f provariadic:o prokind:t
    prosecdef:b proleakproof:b proisstrict:b proretset:b provolatile:t proparallel:t pronargs:i pronargdefaults:i
    prorettype:o proargtypes:a proallargtypes:a proargmodes:x proargnames:x prosrc:t probin:t proconfig:x proacl:x
pg_catalog.pg_publication oid:o pubname:t pubowner:o puballtables:b
pg_catalog.pg_publication_namespace oid:o pnpubid:o pnnspid:o
pg_catalog.pg_publication_rel oid:o prpubid:o prrelid:o prqual:t prattrs:a
pg_catalog.pg_range rngtypid:o rngsubtype:o rngmultitypid:o
pg_catalog.pg_rewrite oid:o rulename:t ev_class:o ev_type:t ev_enabled:t is_instead:b
pg_catalog.pg_rules schemaname:t tablename:t rulename:t definition:t
pg_catalog.pg_sequence seqrelid:o seqtypid:o seqstart:i seqincrement:i seqmax:i seqmin:i seqcache:i seqcycle:b
pg_catalog.pg_sequences schemaname:t sequencename:t sequenceowner:t data_type:t last_value:i
pg_catalog.pg_shdescription objoid:o classoid:o description:t
pg_catalog.pg_stat_activity datid:o datname:t pid:i usename:t application_name:t state:t query:t backend_type:t
pg_catalog.pg_stat_database datid:o datname:t numbackends:i xact_commit:i xact_rollback:i
pg_catalog.pg_stat_user_tables relid:o schemaname:t relname:t seq_scan:i n_live_tup:i n_dead_tup:i
pg_catalog.pg_statistic_ext oid:o stxrelid:o stxname:t stxnamespace:o stxowner:o stxkeys:a stxkind:x stxstattarget:i
pg_catalog.pg_subscription oid:o subdbid:o subname:t subowner:o subenabled:b
pg_catalog.pg_tablespace oid:o spcname:t spcowner:o spcacl:x spcoptions:x
pg_catalog.pg_trigger oid:o tgrelid:o tgparentid:o tgname:t tgfoid:o tgtype:i tgenabled:t tgisinternal:b
    tgconstraint:o
pg_catalog.pg_views schemaname:t viewname:t viewowner:t definition:t
information_schema.applicable_roles grantee:t role_name:t is_grantable:t
information_schema.check_constraints constraint_catalog:t constraint_schema:t constraint_name:t check_clause:t
information_schema.column_privileges grantor:t grantee:t table_catalog:t table_schema:t table_name:t column_name:t
    privilege_type:t is_grantable:t
information_schema.constraint_column_usage table_catalog:t table_schema:t table_name:t column_name:t
    constraint_catalog:t constraint_schema:t constraint_name:t
information_schema.domains domain_catalog:t domain_schema:t domain_name:t data_type:t
information_schema.element_types object_catalog:t object_schema:t object_name:t object_type:t
    collection_type_identifier:t data_type:t
information_schema.enabled_roles role_name:t
information_schema.parameters specific_catalog:t specific_schema:t specific_name:t ordinal_position:i
    parameter_mode:t parameter_name:t data_type:t
information_schema.referential_constraints constraint_catalog:t constraint_schema:t constraint_name:t
    unique_constraint_catalog:t unique_constraint_schema:t unique_constraint_name:t match_option:t update_rule:t
    delete_rule:t
information_schema.routines specific_catalog:t specific_schema:t specific_name:t routine_catalog:t routine_schema:t
    routine_name:t routine_type:t data_type:t routine_definition:t external_language:t
information_schema.sequences sequence_catalog:t sequence_schema:t sequence_name:t data_type:t start_value:t
    minimum_value:t maximum_value:t increment:t cycle_option:t
information_schema.triggers trigger_catalog:t trigger_schema:t trigger_name:t event_manipulation:t
    event_object_schema:t event_object_table:t action_statement:t action_timing:t
information_schema.views table_catalog:t table_schema:t table_name:t view_definition:t check_option:t is_updatable:t
""")
"""Tables of what there is none of here."""
