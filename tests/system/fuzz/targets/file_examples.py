"""Files of every kind from which mutations begin, and words of YAML and CSV that mutations insert."""

from collections.abc import Sequence

YAML_EXAMPLES: Sequence[tuple[str, str]] = (
    (
        "stores",
        """stores:
- id: 010
  name: Kosice
  tenant: milk
  timezone: Europe/Bratislava
  currency: CZK
  country: SK
  subdivision: BL
  day_starts_at: "04:00"
  week_starts_on: sun
  comp_start_date: 2020-01-01
  conversion_target: 32.5
  closed_on: [2026-12-25, 2027-01-01]
  opening_hours: {mon: ["08:00-20:00"], sat: [08:00-12:00, 22:00-24:00]}
  floor_m2: 200.5
  open_since: 2019-05-01
  sensors: [{id: cam, source: people_counts, place: A, from: 2026-01-01, to: 2026-02-01}]
  zones: [{id: shoes, m2: 40}, {id: a}]
  groups: [{valid_from: 2026-01-01, region: West}, {valid_from: 2026-06-01, region: East, size: L}]
- {id: 8, timezone: Asia/Kathmandu, groups: {region: North}}
""",
    ),
    ("stores", "h: &h {mon: [08:00-20:00]}\nstores: [{id: a, timezone: UTC, opening_hours: *h}]"),
    (
        "stores",
        """stores:
- {id: a, timezone: UTC, opening_hours: &h {mon: [08:00-20:00]}}
- {id: b, timezone: UTC, opening_hours: *h}
""",
    ),
    (
        "alerts",
        """rules:
  - {kind: level, id: queue, of: queue, above: 4, minutes: 3, name: Queue too long}
  - kind: threshold
    id: weak
    metric: net_sales
    window: hour
    below: 50
    versus: previous_week
    on: false
  - {kind: silence, id: quiet, source: pos_transactions, minutes: 20, stores: ["1"]}
  - {kind: threshold, id: high, metric: traffic_in, window: day, above: 1.5, for: 2, stores: ["1"]}
""",
    ),
    ("alerts", "tenant: default\nrules: []"),
    (
        "annotations",
        """annotations:
- {first_day: 2026-05-01, last_day: 2026-05-03, kind: promotion, text: "10 % off", stores: ["1", a b]}
- first_day: 2026-12-24
  kind: holiday
  text: >
    closed
    early
  stores: "1,a b"
""",
    ),
    (
        "zones",
        """zones:
- {zone: shoes, rectangle: {x: 0.1, y: 0.2, width: 0.3, height: 0.25}}
- {zone: "a, b 1", polygon: [[0, 0], [1, 0], [1, 1], [0.123456, 0.5]]}
""",
    ),
    (
        "reports",
        """reports:
  - {tenant: acme, period: daily, to: [anna@shop.example], pdf: true, language: de}
  - {tenant: "010", period: weekly, to: [ben@shop.example, "Carl <carl@shop.example>"]}
""",
    ),
)
YAML_WORDS = (
    *(
        b"&a ",
        b"*a",
        b"*b",
        b"<<: *a",
        b"!!python/object:os.system ",
        b"!!binary ",
        b"!!set ",
        b"!x ",
        b"? ",
        b": ",
        b"- ",
    ),
    *(
        b"---\n",
        b"...\n",
        b"%YAML 1.2\n---\n",
        b"%TAG ! tag:x,2000:\n",
        b"|\n",
        b">-\n",
        b'"\\x00"',
        b'"\\uD800"',
        b'"\\L"',
    ),
    *(
        b'"\\UFFFFFFFF"',
        b"~",
        b"yes",
        b"0o17",
        b"0b1",
        b"1:30",
        b".inf",
        b".nan",
        b"2026-01-01T00:00:00Z",
        b"\t",
        b"#",
        b"{}",
    ),
    *(
        b"valid_from: ",
        b"id: ",
        b"timezone: ",
        b"groups: ",
        b"zones: ",
        b"stores: ",
        b"rules: ",
        b"kind: ",
        b"= ",
        b"@",
        b"`",
    ),
)
CSV_EXAMPLES: Sequence[tuple[str, str]] = (
    (
        "targets",
        """store,day,metric,value
1,2026-03-01,net_sales,1200.50
a b,2026-03-01,net_sales,1e3
1,2026-03-02,labor_hours,-0.000001
""",
    ),
    (
        "targets",
        """{"store": 1, "day": "2026-03-01", "metric": "net_sales", "value": 1200.50}
{"store": "a b", "day": "2026-03-01", "metric": "traffic_in", "value": 300}
""",
    ),
    ("targets", 'value,metric,day,store\n"1","net_sales","2026-03-01","1"\r\n\r\n+1.5E2,labor_hours,2026-03-01,1\r\n'),
    (
        "products",
        """sku,title,brand,category,gtin,valid_from
1,"Milk, fresh",Farm,Food/Dairy/Milk,4006381333931,
1,Milk,Farm,Food/Milk,,2026-03-01
2,"So
ap",,,,
3,Soap,,,,
""",
    ),
    (
        "products",
        """{"sku": "1", "title": "a: b::c", "category": "Food/Dairy", "brand": null}
{"sku": 2, "title": "x", "valid_from": "2026-03-01"}
""",
    ),
    (
        "annotations",
        """first_day,last_day,kind,text,stores
2026-05-01,2026-05-03,promotion,"10 % off, twice","1,a b"
2026-12-24,,holiday,closed,
""",
    ),
    (
        "annotations",
        """{"first_day": "2026-05-01", "kind": "note", "text": "a\\u00e9", "stores": ["1", "a b"]}
""",
    ),
    ("zones", "shoes 10 20 30 25\na, b 1 0,0 100,0 100,100 12.3456,50\nbar 0% 0% 100% 100%\n"),
)
"""Kind and content. The line feed within a title is refused."""
CSV_WORDS = (
    *(
        b",",
        b'"',
        b'""',
        b"\r",
        b"\r\n",
        b"\n",
        b";",
        b"\t",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b'{"',
        b'"sku":',
        b'"value":',
    ),
    *(
        b"store",
        b"day",
        b"metric",
        b"value",
        b"sku",
        b"title",
        b"category",
        b"gtin",
        b"first_day",
        b"stores",
        b"/",
        b"//",
    ),
    *(
        b"\\u0000",
        b"\\ud800",
        b"\\u202e",
        b"1e-400",
        b"[1]",
        b'{"a": 1}',
        b"null",
        b"true",
        b"4006381333931",
        b"%",
        b"nan",
    ),
)
