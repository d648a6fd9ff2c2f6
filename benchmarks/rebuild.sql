-- What the batch layer does, as DuckDB does it best: of several plans tried this was the quickest.
-- In: variable `files`. Out: sales_blocks, sales_by_sku_blocks, sales_by_till_blocks (store, day, block).

CREATE VIEW delivery AS SELECT * FROM read_parquet(getvariable('files'));

CREATE TEMP TABLE later AS
WITH again AS (SELECT identity_hash FROM delivery GROUP BY identity_hash HAVING count(*) > 1),
candidate AS (
  SELECT identity, received_at, partition, "offset" FROM delivery SEMI JOIN again USING (identity_hash)
)
SELECT partition, "offset" FROM candidate
QUALIFY row_number() OVER (PARTITION BY identity ORDER BY received_at, partition, "offset") > 1;

CREATE TEMP TABLE receipt AS
SELECT store, CAST(epoch(happened_at) AS BIGINT) // 900 * 900 AS "window", currency, till, is_sale, is_return,
  is_exchange, is_zero, gross_sales, returns_value, units_sold, units_returned, line_count, items, flags
FROM delivery ANTI JOIN later USING (partition, "offset");

CREATE TEMP TABLE sales AS
SELECT store, "window", currency, count(*) AS receipts, count_if(is_sale) AS sale_tx, count_if(is_return) AS return_tx,
  count_if(is_exchange) AS exchange_tx, count_if(is_zero) AS zero_tx, CAST(sum(gross_sales) AS BIGINT) AS gross_sales,
  CAST(sum(returns_value) AS BIGINT) AS returns_value, CAST(sum(units_sold) AS BIGINT) AS units_sold,
  CAST(sum(units_returned) AS BIGINT) AS units_returned, CAST(sum(line_count) AS BIGINT) AS lines,
  count_if(list_contains(flags, 'empty_receipt')) AS flag_empty_receipt,
  count_if(list_contains(flags, 'negative_price')) AS flag_negative_price,
  count_if(list_contains(flags, 'total_mismatch')) AS flag_total_mismatch,
  count_if(list_contains(flags, 'zero_amount')) AS flag_zero_amount
FROM receipt GROUP BY ALL;

CREATE TEMP TABLE sales_by_till AS
SELECT store, "window", currency, till, count(*) AS receipts, count_if(is_sale) AS sale_tx,
  CAST(sum(gross_sales - returns_value) AS BIGINT) AS net_sales
FROM receipt GROUP BY ALL;

CREATE TEMP TABLE sales_by_sku AS
SELECT store, "window", currency, item.sku AS sku, CAST(sum(item.net_sales) AS BIGINT) AS net_sales,
  CAST(sum(item.net_units) AS BIGINT) AS net_units, count_if(item.is_sale) AS sku_receipts
FROM (SELECT store, "window", currency, unnest(items) AS item FROM receipt) GROUP BY ALL;

CREATE TEMP TABLE sales_blocks AS
SELECT store, CAST(make_timestamp("window" * 1000000) AS DATE) AS day, CAST(to_json({
  "window": list("window"), currency: list(currency), receipts: list(receipts), sale_tx: list(sale_tx),
  return_tx: list(return_tx), exchange_tx: list(exchange_tx), zero_tx: list(zero_tx), gross_sales: list(gross_sales),
  returns_value: list(returns_value), units_sold: list(units_sold), units_returned: list(units_returned),
  lines: list(lines), flag_empty_receipt: list(flag_empty_receipt), flag_negative_price: list(flag_negative_price),
  flag_total_mismatch: list(flag_total_mismatch), flag_zero_amount: list(flag_zero_amount)}) AS VARCHAR) AS block
FROM sales GROUP BY ALL;

CREATE TEMP TABLE sales_by_till_blocks AS
SELECT store, CAST(make_timestamp("window" * 1000000) AS DATE) AS day, CAST(to_json({
  "window": list("window"), currency: list(currency), till: list(till), receipts: list(receipts),
  sale_tx: list(sale_tx), net_sales: list(net_sales)}) AS VARCHAR) AS block
FROM sales_by_till GROUP BY ALL;

CREATE TEMP TABLE sales_by_sku_blocks AS
SELECT store, CAST(make_timestamp("window" * 1000000) AS DATE) AS day, CAST(to_json({
  "window": list("window"), currency: list(currency), sku: list(sku), net_sales: list(net_sales),
  net_units: list(net_units), sku_receipts: list(sku_receipts)}) AS VARCHAR) AS block
FROM sales_by_sku GROUP BY ALL;
