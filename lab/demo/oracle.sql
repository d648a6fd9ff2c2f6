-- A second opinion on every cell, from the raw bytes alone: own parsing, own first deliveries, own sums.
-- In:  view `record` (partition, offset, received_at, value), table `shop` (store, currency),
--      variables cut_us and oldest_us. Out: table delivery, and one for each view of receipts.
-- Rules: metrics catalogue 1.1 and 2.3, design section 2. All currencies of the demo have two decimals.

CREATE OR REPLACE TABLE delivery AS
WITH parsed AS (
  SELECT partition, "offset", epoch_us(received_at) AS received_us,
    -- numbers go from their text to decimals, never through a double
    from_json(decode("value"), '{"operation_id": "VARCHAR", "vendor_fiscal_module": "VARCHAR",
      "transaction_id": "VARCHAR", "happened_at": "VARCHAR", "transactions": [{"title": "VARCHAR",
      "price": "DECIMAL(28,6)", "amount": "DECIMAL(10,3)", "total": "DECIMAL(18,2)", "sku": "VARCHAR",
      "discount": "DECIMAL(18,2)"}], "payments": [{"type": "VARCHAR", "amount": "DECIMAL(18,2)"}]}') AS r
  FROM record
), identified AS (
  SELECT partition, "offset", received_us, r.operation_id AS store, r.vendor_fiscal_module AS till,
    r.transaction_id AS number, epoch_ms(CAST(r.happened_at AS TIMESTAMPTZ)) AS happened_ms, r.transactions AS lines,
    CASE WHEN len(r.payments) > 0 THEN r.payments END AS payments
  FROM parsed
  WHERE getvariable('only_store') IS NULL OR r.operation_id = getvariable('only_store')
), met AS (
  -- In one partition the least offset is the first, although its stamp may be the greater one.
  SELECT *, first_value(received_us) OVER (
    PARTITION BY store, till, number, happened_ms, partition ORDER BY "offset"
  ) AS met_us
  FROM identified
)
SELECT *, row_number() OVER deliveries AS nth,
  received_us >= getvariable('cut_us') AND received_us - happened_ms * 1000 > getvariable('oldest_us') AS is_old,
  lines IS DISTINCT FROM first_value(lines) OVER deliveries
    OR payments IS DISTINCT FROM first_value(payments) OVER deliveries AS is_conflict
FROM met
WINDOW deliveries AS (
  PARTITION BY store, till, number, happened_ms ORDER BY met_us, partition, "offset"
  ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
);

-- What speed leaves to the next publication: received since the cut and older than it can remember.
CREATE OR REPLACE TABLE receipt AS
SELECT row_number() OVER () AS id, store, till, coalesce(shop.currency, 'EUR') AS currency,
  happened_ms // 900000 * 900 AS "window", lines, payments
FROM delivery LEFT JOIN shop USING (store)
WHERE nth = 1 AND NOT is_old;

CREATE OR REPLACE TABLE line AS
WITH raw AS (
  SELECT id, store, currency, "window", unnest(lines) AS l FROM receipt
), exact AS (
  SELECT id, store, currency, "window", nullif(l.sku, '') AS sku, l.amount AS amount,
    CAST(l.total * 100 AS BIGINT) AS sent, CAST(l.discount * 100 AS BIGINT) AS discount, l.price < 0 AS is_negative,
    CAST(l.price * 1000000 AS HUGEINT) * CAST(l.amount * 1000 AS HUGEINT) AS billionths
  FROM raw
), halves AS (
  SELECT *, billionths // 10000000 AS cents, abs(billionths % 10000000) AS rest FROM exact
)
SELECT id, store, currency, "window", sku, amount, discount, is_negative,
  coalesce(abs((sent + coalesce(discount, 0)) * CAST(10000000 AS HUGEINT) - billionths) > 10000000, false)
    AS is_mismatch,  -- by more than a cent
  CAST(coalesce(sent, CASE
    WHEN rest > 5000000 OR (rest = 5000000 AND cents % 2 <> 0) THEN cents + sign(billionths)
    ELSE cents END - coalesce(discount, 0)) AS BIGINT) AS total,  -- half-even; cents were cut towards zero
  CAST(CASE WHEN amount = floor(amount) THEN abs(amount) ELSE 1 END AS BIGINT) AS units  -- what is weighed is one piece
FROM halves;

CREATE OR REPLACE TABLE added_up AS
SELECT receipt.id, any_value(receipt.store) AS store, any_value(receipt.till) AS till,
  any_value(receipt.currency) AS currency, any_value(receipt."window") AS "window",
  count_if(amount > 0) AS sale_lines, count_if(amount < 0) AS return_lines,
  coalesce(sum(total) FILTER (amount >= 0), 0) AS gross, coalesce(-sum(total) FILTER (amount < 0), 0) AS returned,
  coalesce(sum(units) FILTER (amount > 0), 0) AS units_sold, coalesce(sum(units) FILTER (amount < 0), 0) AS units_back,
  sum(discount) FILTER (amount >= 0) AS discount, -sum(discount) FILTER (amount < 0) AS discount_back,
  count(line.id) AS lines, coalesce(bool_or(is_negative), false) AS is_negative,
  coalesce(bool_or(is_mismatch), false) AS is_mismatch, coalesce(bool_or(amount = 0), false) AS is_nothing
FROM receipt LEFT JOIN line USING (id)
GROUP BY receipt.id;

CREATE OR REPLACE TABLE sales AS
SELECT store, "window", currency, count(*) AS receipts, count_if(sale_lines > 0) AS sale_tx,
  count_if(return_lines > 0 AND sale_lines = 0) AS return_tx,
  count_if(return_lines > 0 AND sale_lines > 0) AS exchange_tx,
  count_if(return_lines = 0 AND sale_lines = 0) AS zero_tx,
  sum(gross) AS gross_sales, sum(returned) AS returns_value, sum(units_sold) AS units_sold,
  sum(units_back) AS units_returned, sum(lines) AS lines, count_if(lines = 0) AS flag_empty_receipt,
  count_if(is_negative) AS flag_negative_price, count_if(is_mismatch) AS flag_total_mismatch,
  count_if(is_nothing) AS flag_zero_amount
FROM added_up GROUP BY store, "window", currency;

CREATE OR REPLACE TABLE sales_by_till AS
SELECT store, "window", currency, till, count(*) AS receipts, count_if(sale_lines > 0) AS sale_tx,
  sum(gross - returned) AS net_sales
FROM added_up GROUP BY store, "window", currency, till;

CREATE OR REPLACE TABLE sales_by_sku AS
WITH item AS (  -- a receipt counts once for an item that it names twice
  SELECT id, store, "window", currency, sku, sum(total) AS net, sum(CASE WHEN amount < 0 THEN -units ELSE units END) AS units,
    bool_or(amount > 0) AS is_sale
  FROM line WHERE sku IS NOT NULL GROUP BY id, store, "window", currency, sku
)
SELECT store, "window", currency, sku, sum(net) AS net_sales, sum(units) AS net_units, count_if(is_sale) AS sku_receipts
FROM item GROUP BY store, "window", currency, sku;

CREATE OR REPLACE TABLE returns_by_sku AS
SELECT store, "window", currency, sku, -sum(total) AS returns_value, sum(units) AS units_returned, count(*) AS return_lines
FROM line WHERE amount < 0 AND sku IS NOT NULL GROUP BY store, "window", currency, sku;

CREATE OR REPLACE TABLE sold AS  -- the items that a receipt sells, and how many they are
SELECT id, store, "window", sku, count(*) OVER (PARTITION BY id) AS items
FROM line WHERE sku IS NOT NULL GROUP BY id, store, "window", sku HAVING bool_or(amount > 0);

CREATE OR REPLACE TABLE basket_pairs AS
SELECT a.store, a."window", a.sku, b.sku AS with_sku, count(*) AS pair_receipts
FROM sold a JOIN sold b ON a.id = b.id AND encode(a.sku) < encode(b.sku)
WHERE a.items <= 5 AND b.items <= 5 GROUP BY a.store, a."window", a.sku, b.sku;

CREATE OR REPLACE TABLE basket_sizes AS
SELECT store, "window", currency, count(*) AS baskets, sum(gross) AS basket_value,
  count_if(gross < 100) AS value_0, count_if(gross >= 100 AND gross < 200) AS value_1,
  count_if(gross >= 200 AND gross < 500) AS value_2, count_if(gross >= 500 AND gross < 1000) AS value_3,
  count_if(gross >= 1000 AND gross < 2000) AS value_4, count_if(gross >= 2000 AND gross < 5000) AS value_5,
  count_if(gross >= 5000 AND gross < 10000) AS value_6, count_if(gross >= 10000 AND gross < 20000) AS value_7,
  count_if(gross >= 20000 AND gross < 50000) AS value_8, count_if(gross >= 50000 AND gross < 100000) AS value_9,
  count_if(gross >= 100000 AND gross < 200000) AS value_10, count_if(gross >= 200000 AND gross < 500000) AS value_11,
  count_if(gross >= 500000 AND gross < 1000000) AS value_12,
  count_if(gross >= 1000000 AND gross < 2000000) AS value_13,
  count_if(gross >= 2000000 AND gross < 5000000) AS value_14, count_if(gross >= 5000000) AS value_15,
  min(gross) AS value_min, max(gross) AS value_max,
  count_if(units_sold < 1) AS units_0, count_if(units_sold >= 1 AND units_sold < 2) AS units_1,
  count_if(units_sold >= 2 AND units_sold < 3) AS units_2, count_if(units_sold >= 3 AND units_sold < 4) AS units_3,
  count_if(units_sold >= 4 AND units_sold < 5) AS units_4, count_if(units_sold >= 5 AND units_sold < 6) AS units_5,
  count_if(units_sold >= 6 AND units_sold < 8) AS units_6, count_if(units_sold >= 8 AND units_sold < 11) AS units_7,
  count_if(units_sold >= 11 AND units_sold < 16) AS units_8, count_if(units_sold >= 16 AND units_sold < 21) AS units_9,
  count_if(units_sold >= 21 AND units_sold < 31) AS units_10,
  count_if(units_sold >= 31 AND units_sold < 51) AS units_11, count_if(units_sold >= 51) AS units_12,
  min(units_sold) AS units_min, max(units_sold) AS units_max,
  count_if(lines < 1) AS lines_0, count_if(lines >= 1 AND lines < 2) AS lines_1,
  count_if(lines >= 2 AND lines < 3) AS lines_2, count_if(lines >= 3 AND lines < 4) AS lines_3,
  count_if(lines >= 4 AND lines < 5) AS lines_4, count_if(lines >= 5 AND lines < 6) AS lines_5,
  count_if(lines >= 6 AND lines < 8) AS lines_6, count_if(lines >= 8 AND lines < 11) AS lines_7,
  count_if(lines >= 11 AND lines < 16) AS lines_8, count_if(lines >= 16 AND lines < 21) AS lines_9,
  count_if(lines >= 21 AND lines < 31) AS lines_10, count_if(lines >= 31 AND lines < 51) AS lines_11,
  count_if(lines >= 51) AS lines_12, min(lines) AS lines_min, max(lines) AS lines_max,
  count_if(id IN (SELECT id FROM sold WHERE items > 5)) AS pairs_cut
FROM added_up WHERE sale_lines > 0 GROUP BY store, "window", currency;

CREATE OR REPLACE TABLE discounts AS
SELECT store, "window", currency, count(*) AS discount_receipts, count_if(discount > 0) AS discounted,
  coalesce(sum(discount), 0) AS discounts, coalesce(sum(discount_back), 0) AS discounts_returned, sum(gross) AS gross_sales
FROM added_up WHERE discount IS NOT NULL OR discount_back IS NOT NULL GROUP BY store, "window", currency;

CREATE OR REPLACE TABLE payments AS
WITH payment AS (
  SELECT store, "window", currency, unnest(payments) AS p, generate_subscripts(payments, 1) AS place FROM receipt
)
SELECT store, "window", currency, p.type AS payment_type, CAST(sum(p.amount * 100) AS BIGINT) AS payments,
  count(*) AS payments_count, count_if(place = 1) AS payment_receipts
FROM payment GROUP BY store, "window", currency, p.type;

DROP TABLE sold;
DROP TABLE receipt;
DROP TABLE line;
DROP TABLE added_up;
