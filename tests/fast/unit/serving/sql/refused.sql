insert into stores values ('9')
insert into sales_day select * from sales_day
insert into stores default values returning *
update stores set name = 'x'
update sales_day set net_sales = 0 where store = '1'
delete from stores
delete from receipts using stores where true
truncate stores
truncate table sales_day, stores
merge into stores using products on true when matched then delete
with gone as (delete from stores returning *) select * from gone
with made as (insert into stores values ('9') returning *) select * from made
with changed as (update stores set name = 'x' returning *) select * from changed
create table x (a int)
create table x as select * from stores
create temp table x as select 1
create temporary table x (a int)
create unlogged table x (a int)
create view x as select 1
create or replace view stores as select 1
create materialized view x as select 1
create schema x
create database x
create role x
create user x
create extension dblink
create function x() returns int language sql as 'select 1'
create or replace function f() returns int as $$ select 1 $$ language plpython3u
create macro x() as 1
create sequence x
create type x as enum ('a')
create index on stores (store)
create trigger x before insert on stores execute function f()
create server x foreign data wrapper postgres_fdw
create foreign table x (a int) server y
create secret (type s3, key_id 'x', secret 'y')
create persistent secret x (type http, bearer_token 'y')
create publication x for all tables
create subscription x connection 'host=h' publication y
create tablespace x location '/tmp'
create event trigger x on ddl_command_start execute function f()
select * into x from stores
select store into temp x from stores
alter table stores add column x int
alter table stores rename to x
alter role galatea superuser
alter system set work_mem = '1GB'
alter database galatea set timezone = 'UTC'
alter user galatea with password 'x'
alter default privileges grant select on tables to public
drop table stores
drop view stores
drop schema public cascade
drop database galatea
drop owned by galatea
grant select on stores to public
grant galatea to x
revoke all on stores from public
reassign owned by galatea to x
comment on table stores is 'x'
security label on table stores is 'x'
copy stores to '/tmp/x.csv'
copy stores to stdout
copy stores from '/etc/passwd'
copy stores from program 'id'
copy (select * from stores) to '/tmp/x.parquet' (format parquet)
copy (select * from stores) to program 'sh'
copy from database galatea to x
export database '/tmp/x'
import database '/tmp/x'
vacuum
vacuum full stores
analyze
analyze stores
reindex table stores
cluster stores
checkpoint
force checkpoint
lock table stores in exclusive mode
refresh materialized view x
select * from stores for update
select * from stores for share nowait
select * from (select * from stores for no key update skip locked) s
select * from stores for key share
attach '/tmp/x.db'
attach ':memory:' as x
attach 'postgres://h/d' as x (type postgres)
detach galatea
use x
install httpfs
install 'x' from 'http://example.com'
force install httpfs
load httpfs
load '/tmp/x.duckdb_extension'
update extensions
pragma database_list
pragma version
pragma threads = 8
pragma enable_profiling
pragma_version()
call pragma_version()
call f()
call duckdb_settings()
do $$ begin perform 1; end $$
do language plpgsql 'begin end'
execute x
execute immediate 'select 1'
prepare x as select 1
prepare transaction 'x'
commit prepared 'x'
rollback prepared 'x'
listen x
notify x, 'y'
declare c cursor for delete from stores
declare c cursor with hold for select * from read_csv('/etc/passwd')
fetch all of c
describe stores
summarize stores
summarize select * from stores
show tables from x
from stores
from stores select store
from read_csv('/etc/passwd')
from '/etc/passwd'
pivot stores on store using count(*)
unpivot stores on store into name n value v
select * from read_csv('/etc/passwd')
select * from read_csv_auto('/etc/passwd')
select * from read_parquet('/tmp/*.parquet')
select * from parquet_scan('/tmp/x.parquet')
select * from parquet_metadata('/tmp/x.parquet')
select * from parquet_schema('/tmp/x.parquet')
select * from read_json('/etc/passwd')
select * from read_json_auto('/tmp/x.json')
select * from read_ndjson('/tmp/x')
select * from read_json_objects('/tmp/x')
select * from read_text('/etc/passwd')
select content from read_text('/home/*/.ssh/*')
select * from read_blob('/etc/passwd')
select * from sniff_csv('/etc/passwd')
select * from glob('/*')
select * from '/etc/passwd'
select * from 'x.parquet'
select * from "/etc/passwd"
select * from "x.csv"
select * from "http://example.com/x.parquet"
select * from 's3://bucket/x.parquet'
select * from stores s, read_csv('/etc/passwd') r
select * from stores, lateral (select * from read_text(name)) r
select (select content from read_text('/etc/passwd'))
select * from stores where name in (select content from read_text('/etc/passwd'))
with x as (select * from read_text('/etc/passwd')) select * from x
select 1 union all select content from read_text('/etc/passwd')
select exists (select * from glob('/home/*'))
select count(*) filter (where getenv('HOME') is not null) from stores
select getenv('HOME')
select pg_catalog.getenv('HOME')
select main.getenv('HOME')
select system.main.getenv('HOME')
select getvariable('x')
select list_transform([1], x -> getenv('HOME'))
select store from stores order by getenv('HOME')
select store from stores group by getenv('HOME'), store
select row_number() over (order by getenv('HOME')) from stores
select case when true then getenv('HOME') end
select coalesce(null, getenv('HOME'))
select "getenv"('HOME')
select GETENV('HOME')
select /* x */ getenv /* y */ ('HOME')
select pg_read_file('/etc/passwd')
select pg_read_binary_file('/etc/passwd')
select pg_catalog.pg_read_file('/etc/passwd')
select * from pg_read_file('/etc/passwd')
select * from pg_ls_dir('/')
select * from pg_ls_logdir()
select pg_stat_file('/etc/passwd')
select pg_file_write('/tmp/x', 'y', false)
select pg_terminate_backend(1)
select pg_cancel_backend(1)
select pg_reload_conf()
select pg_rotate_logfile()
select pg_sleep(1000)
select sleep_ms(1000)
select pg_advisory_lock(1)
select pg_notify('x', 'y')
select pg_logical_emit_message(true, 'x', 'y')
select pg_switch_wal()
select pg_create_restore_point('x')
select lo_import('/etc/passwd')
select lo_export(1, '/tmp/x')
select lo_create(1)
select lo_from_bytea(0, 'x')
select loread(1, 1)
select lowrite(1, 'x')
select dblink('host=h', 'select 1')
select * from dblink('host=h', 'select 1') as t(a int)
select dblink_connect('host=h')
select dblink_exec('host=h', 'drop table x')
select query_to_xml('select 1', true, true, '')
select table_to_xml('stores', true, true, '')
select database_to_xml(true, true, '')
select xpath('/x', '<x/>')
select set_config('timezone', 'UTC', false)
select set_config('search_path', '', false)
select nextval('x')
select setval('x', 1)
select currval('x')
select setseed(0.5)
select current_setting('data_directory')
select current_setting('config_file')
select write_log('x')
select * from query('select 1')
select * from query_table('stores')
select * from query_table(['stores', 'products'])
select json_execute_serialized_sql('{}')
select * from json_execute_serialized_sql(json_serialize_sql('select 1'))
select json_serialize_sql('select 1')
select json_deserialize_sql('{}')
select * from sql_auto_complete('sel')
select * from duckdb_settings()
select * from duckdb_secrets()
select * from duckdb_extensions()
select * from duckdb_databases()
select * from duckdb_tables()
select * from duckdb_views()
select * from duckdb_columns()
select * from duckdb_functions()
select * from duckdb_logs()
select * from duckdb_temporary_files()
select * from duckdb_memory()
select * from duckdb_variables()
select * from pragma_table_info('stores')
select * from pragma_storage_info('stores')
select * from pragma_database_size()
select * from which_secret('s3://x', 's3')
select * from arrow_scan(1, 2, 3)
select * from arrow_scan_dumb(1, 2, 3)
select * from pandas_scan(1)
select * from python_map_function(1)
select * from seq_scan('stores')
select * from test_all_types()
select * from test_vector_types(null::int)
select * from repeat_row(1, num_rows := 1000000000)
select * from summary('stores')
select * from checkpoint('galatea')
select * from force_checkpoint('galatea')
select * from enable_logging()
select * from information_schema.secrets
select * from duckdb_secrets
select * from sqlite_master
select * from pragma_show
select * from main.stores
select * from memory.main.galatea_table_0
select * from galatea_table_0
select * from system.information_schema.tables
select * from temp.x
select * from other.public.stores
select * from pg_catalog.pg_shadow
select * from pg_catalog.pg_authid
select * from pg_catalog.pg_largeobject
select * from pg_temp.x
select 1; drop table stores
select 1; select 2
select 1;; delete from stores
begin; drop table stores; commit
; drop table stores
explain analyze select 1
explain (analyze, buffers) select * from stores
explain delete from stores
explain create table x as select 1
explain analyze delete from stores
set role postgres
set session authorization postgres
set session_authorization to postgres
set local role postgres
set memory_limit = '100GB'
set threads = 64
set enable_external_access = true
set lock_configuration = false
set temp_directory = '/tmp'
set home_directory = '/tmp'
set extension_directory = '/tmp'
set allow_unsigned_extensions = true
set python_enable_replacements = true
set global memory_limit = '100GB'
set variable x = 1
set schema 'x'
set server_version = '1'
set client_encoding = 'LATIN1'
set datestyle = 'German'
set standard_conforming_strings = off
set transaction_read_only = off
set timezone = 'Nowhere/Land'
set timezone = (select 1)
set statement_timeout = 'forever'
reset memory_limit
show memory_limit
select * from stores tablesample system (10)
select 'a' similar to 'b'
select $1
select :name
select @name
select ?
select levenshtein(name, name) from stores
select damerau_levenshtein('a', 'b')
select jaccard('ab', 'cd')
select jaro_similarity('ab', 'cd')
select jaro_winkler_similarity('ab', 'cd')
select editdist3('ab', 'cd')
select columns('.*') from stores
select columns(*) from stores
select sum(columns('net_.*')) from sales_day
set statement_timeout = '٣s'
set time zone '٣'
