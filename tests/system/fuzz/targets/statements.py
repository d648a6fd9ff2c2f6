"""Statements from which mutations of SQL begin, and words that they insert."""

from pathlib import Path

from tests.support.documented import ROOT, blocks

PAGES = ("how-to/sql.md", "how-to/products.md", "explanation/sql.md")
REFUSED = Path(__file__).parents[3] / "fast" / "unit" / "serving" / "sql" / "refused.sql"
WORDS = (
    "select from where group by having order limit offset distinct all union intersect except with recursive as on join "
    "left right full cross lateral using case when then else end cast interval date time timestamp timestamptz numeric "
    "between like ilike similar to in exists any some null true false not and or is over partition rows range unbounded "
    "preceding following filter within array row values explain show set reset begin commit rollback declare cursor for "
    "fetch forward close prepare execute deallocate discard sum count avg min max round date_trunc extract generate_series "
    "percentile_cont string_agg array_agg to_char substring position overlay trim coalesce nullif greatest least now "
    "current_date pg_catalog pg_class information_schema tables columns sales_day sales_hour metrics_day stores receipts "
    "products alerts store start net_sales day sku tenant :: || -> ->> @> && ~ !~* <> != <= >= % ^ | & << >> $1 $2 $$ * "
    "lower upper length repeat lpad replace regexp_replace split_part concat format md5 random unnest cardinality "
    "tablesample qualify pivot unpivot asof natural collate escape at zone isnull notnull overlaps grouping sets rollup cube"
)
STATEMENTS = (
    *(
        "",
        ";",
        "select 1",
        "select 1; select 2;",
        "begin; select 1; rollback",
        "show timezone",
        "set timezone to 'Asia/Tokyo'",
    ),
    "select store, sum(net_sales) from sales_day where day >= date '2026-03-01' group by store order by 2 desc limit 5",
    "select date_trunc('hour', start), count(*) from sales_hour group by 1 having count(*) > 1",
    "with q as (select store, day, net_sales from sales_day) select a.store, b.day from q a join q b using (store)",
    "select * from generate_series(1, 10) g(n) left join stores on store = n::text",
    "select sum(net_sales) over (partition by store order by day rows between 2 preceding and current row) from sales_day",
    "select case when 1 > 0 then 'a' else null end, cast('1.50' as numeric(10,2)), 7 / 2, -7 % 3, 2 ^ 10",
    "select now() - interval '1 day 2 hours', extract(epoch from timestamp '2026-03-01 10:00'), date '2026-03-01' + 7",
    "select array[1, 2, null], array['a', 'b'] || 'c', (array[1,2,3])[2], unnest(array[1,2])",
    "select to_char(timestamp '2026-03-01 10:00', 'YYYY-MM-DD HH24:MI:SS'), to_date('01.03.2026', 'DD.MM.YYYY')",
    "select 'x' like '%_\\%' escape '\\', 'abc' ~ '^a(b|c)+$', regexp_replace('abc', '(b)', '[\\1]', 'g')",
    "select repeat('x', 100), lpad('1', 5, '0'), substring('hello' from 2 for 3), position('l' in 'hello'), md5('a')",
    "select e'\\u00e9\\n', U&'\\00e9', $$text$$, $tag$it's$tag$, 'it''s', \"store\" from stores",
    "select percentile_cont(0.5) within group (order by net_sales), count(*) filter (where store = '1') from sales_day",
    "select n.nspname, c.relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace",
    "select table_name, column_name from information_schema.columns where table_schema not in ('pg_catalog') limit 3",
    "declare c cursor for select store from stores; fetch 2 from c; close c",
    'begin; declare "a b" no scroll cursor with hold for select 1; fetch all in "a b"; commit',
    "explain select store from sales_day where store in ('1', '2') and day between '2026-03-01' and '2026-03-02'",
    "select store from stores where store = any(array['1','2']) union all select name from stores except select '1'",
    "select count(distinct till), string_agg(store, ',' order by store), bool_or(net_sales > 1) from receipts, sales_day",
    "select exists (select 1 from stores), (select max(day) from sales_day), coalesce(null, 1), nullif(1, 1), $1::int + $2",
    "select * from sales_day where day = '2026-03-01'::date and start at time zone 'Asia/Tokyo' > '2026-03-01'",
    "select grouping(store), store, day, sum(net_sales) from sales_day group by rollup (store, day)",
    "select 1::smallint, 2147483648::bigint, 1e300::float8, 'NaN'::float8, 1.0::real, true::int, 'a'::char(3), x'ff'",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 10) select sum(n) from t",
    "select interval '1 month' * 3, justify_days(interval '40 days'), age(date '2026-03-01', date '2025-01-31')",
    "prepare p as select $1::text; execute p('a'); deallocate p",
    "select round(2.5), trunc(-1.7, 0), mod(7, 3), abs(-1), power(2, 0.5), sqrt(2), ln(10), width_bucket(5, 0, 10, 5)",
)


def statements() -> list[bytes]:
    """Those above, those of the documentation, and those that are refused."""
    documented = [block.text for page in PAGES for block in blocks(ROOT / "docs" / page)]
    queries = [text for text in documented if text.lstrip().lower().startswith(("select", "with"))]
    refused = REFUSED.read_text(encoding="utf-8").splitlines()
    return [text.encode() for text in (*STATEMENTS, *queries, *refused)]
