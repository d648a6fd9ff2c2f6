// Keeps the numbers of a page up to date while it is visible, and shows how current they are.
// It evaluates no metric: it formats numbers and draws sparklines, exactly as `figures.py` and `charts.py` do.
"use strict";
(() => {
  const METRICS = "/v1/metrics/", MAX_METRICS = 10, EVERY_MS = 1000, MAX_WAIT_MS = 300000, RELOAD_AFTER_MS = 30000, MIN_DELAY_MS = 250, TIMES_TAKEN = 4, MAX_PAUSE_MS = 60000, MAX_UNCHANGED_MS = 10000;
  const shareToken = location.pathname.match(/^\/shared\/([\w-]{43})$/)?.[1]; // a shared page has no cookie, its address is its right
  const bar = document.querySelector("[data-live]");
  const responses = new Map(); // address -> { etag, body }
  const separate = new Set(); // queries that failed together with others, so they are sent alone
  const requestedAt = new Map(); // group of queries -> when
  const openedAt = Date.now(), lastsMs = 1000 * Number(document.getElementById("main").dataset.lasts || Infinity);
  const loadedAt = new Map(); // id of a region -> when it was last asked for
  let changedAt = 0, waitUntil = 0, lastAt = 0, asOf = "", timer = 0;

  const language = document.documentElement.lang, texts = JSON.parse(document.body.dataset.texts || "{}");
  const tr = (text, values = {}) => Object.entries(values).reduce((all, [name, value]) => all.replace(`{${name}}`, value), texts[text] ?? text);
  const grouped = (value, digits) => Number(value).toLocaleString(language, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: "always", signDisplay: "negative" }).replace("-", "−");
  const duration = (ms) => {
    const s = Math.floor((ms + 500) / 1000), two = (n) => String(n).padStart(2, "0");
    return s < 60 ? `${s} s` : s < 3600 ? `${Math.floor(s / 60)} min ${two(s % 60)} s` : `${Math.floor(s / 3600)} h ${two(Math.floor(s % 3600 / 60))} min`;
  };
  const formatted = (value, { unit, digits }) => value === null || value === undefined ? "–"
    : unit === "ms" ? duration(value) : grouped(value, unit === "money" ? Number(digits) : unit === "n" ? 0 : 1);
  const TINY_BASE_PERCENT = 1000;
  // What precedes the number, the number, and what follows it; a minus sign precedes a symbol.
  const partsOf = (value, { unit, digits, symbol, symbolFirst, suffix = "" }) => {
    const number = formatted(value, { unit, digits });
    if (value === null || value === undefined) return ["", number, ""];
    if (unit !== "money") return ["", number, suffix];
    if (!symbolFirst) return ["", number, symbol];
    return [`${number.startsWith("−") ? "−" : ""}${symbol}${/\p{L}$/u.test(symbol) ? "\u00a0" : ""}`, number.replace("−", ""), ""];
  };
  const full = (value, dataset) => {
    const [before, number, after] = partsOf(value, dataset);
    return `${before}${number}${after && ` ${after}`}`;
  };
  // Until when an answer knows what happened: a quiet store's last event may be older than the cut.
  const knownUntil = ({ speed_as_of: speed, cut }) => speed && Date.parse(speed) > Date.parse(cut) ? speed : cut;
  const changeOf = (point) => "change_points" in point ? [point.change_points, tr("points")] : [point.change, "%"];

  const clocks = new Map();
  const clock = (zone) => {
    if (!clocks.has(zone)) clocks.set(zone, new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", timeZone: zone }));
    return clocks.get(zone);
  };
  function spark(points) {
    const WIDTH = 300, HEIGHT = 48, MARGIN = 5, short = (value) => Math.round(value * 10) / 10;
    const known = points.map((point) => point.value).filter((value) => value !== null), low = Math.min(0, ...known), high = Math.max(0, ...known);
    const step = (WIDTH - 2 * MARGIN) / Math.max(points.length - 1, 1), scale = (HEIGHT - 2 * MARGIN) / ((high - low) || 1);
    const places = points.map(({ value }, number) => value === null ? null : `${short(MARGIN + number * step)} ${short(HEIGHT - MARGIN - (value - low) * scale)}`);
    const drawn = { final: "", provisional: "", end: places.at(-1) ? `M${places.at(-1)}h0` : "" };
    places.forEach((place, number) => {
      if (number && place && places[number - 1]) drawn[points[number].final ? "final" : "provisional"] += `M${places[number - 1]}L${place}`;
    });
    return drawn;
  }

  const put = (place, text) => {
    if (place.textContent === text) return;
    place.textContent = text;
    place.classList.remove("is-new");
    requestAnimationFrame(() => place.classList.add("is-new"));
  };
  const renderers = {
    value: (place, points) => {
      const [before, number, after] = partsOf(points.at(-1).value, place.dataset), figure = place.closest(".figure");
      put(place, number);
      figure.querySelector("[data-part=before]").textContent = before;
      figure.querySelector("[data-part=after]").textContent = after;
    },
    compared: (place, points) => put(place, full(points.at(-1).value, place.dataset)),
    change: (place, points) => {
      const [value, unit] = changeOf(points.at(-1));
      const known = value !== null && value !== undefined;
      place.dataset.direction = !known ? "" : Math.abs(value) < 0.05 ? "level" : value > 0 ? "up" : "down";
      if (known && unit === "%" && Math.abs(value) >= TINY_BASE_PERCENT) return put(place, tr("from {number}", { number: full(points.at(-1).before, place.dataset) }));
      put(place, known ? `${{ up: "+", down: "−", level: "±" }[place.dataset.direction]}${grouped(Math.abs(value), 1)} ${unit}` : (points.at(-1).before ?? null) === null ? tr("nothing to compare with") : "");
    },
    before: (place, points) => put(place, full(points.at(-1).before, place.dataset)),
    until: (place, _, { compared }) => {
      if (compared?.until) put(place, clock(place.dataset.zone).format(Date.parse(compared.until)));
    },
    state: (place, points) => {
      const word = points.at(-1).final ? "final" : "provisional";
      place.dataset.state = word;
      put(place, tr(word));
    },
    share: (place, points, _, { as_of: { loading } }) => {
      const sum = (of) => of.reduce((all, point) => all + Math.abs(point.value ?? 0), 0);
      const whole = sum(points), share = whole ? 100 * sum(points.filter((point) => !point.final)) / whole : 0;
      const rect = place.querySelector("rect.provisional");
      rect.setAttribute("x", `${100 - share}%`);
      rect.setAttribute("width", `${share}%`);
      place.dataset.whole = whole ? "some" : "none";
      put(place.querySelector("p"), !whole && loading ? tr("Loading history") : !whole ? place.dataset.nothing : share < 0.05 ? tr("All of it is final") : tr("{share} % of it provisional", { share: grouped(share, 0) }));
    },
    appear: (place, points) => { // there is no element for a number that was missing: load the whole page again
      if (points.some((point) => point.value) && Date.now() - openedAt > RELOAD_AFTER_MS) location.reload();
    },
    spark: (place, points) => {
      const drawn = spark(points), word = points.at(-1).final ? "final" : "provisional";
      for (const name of ["final", "provisional"]) place.querySelector(`.${name}`).setAttribute("d", drawn[name]);
      for (const end of place.querySelectorAll(".end")) end.setAttribute("d", drawn.end);
      place.dataset.end = word;
      const text = place.getAttribute("aria-label").replace(/\S+$/, tr(word));
      place.setAttribute("aria-label", text);
      place.querySelector("title").textContent = text;
    },
  };

  // Of one store, or the total of all stores, which has a series for each currency.
  const seriesOf = ({ store, currency }, body) => body.series.find((each) => store ? each.store === store : each.store === undefined && (!currency || (each.currency ?? body.currency) === currency));
  function show(place, body) {
    const series = seriesOf(place.dataset, body);
    if (!series || !series.points.length) return;
    if (place.dataset.show) renderers[place.dataset.show](place, series.points, series, body);
    else place.dispatchEvent(new CustomEvent("galatea:answer", { detail: { body, points: series.points } }));
  }

  // A shared page that is refused has expired or changed, which it says itself.
  const reloadIfRefused = ({ status }) => {
    if (shareToken && [401, 403, 404, 410].includes(status) && Date.now() - openedAt > RELOAD_AFTER_MS) location.reload();
  };
  // A response that is an error, with how long it says to wait before the next request.
  const refused = (response, message) => Object.assign(new Error(message || `status ${response.status}`), {
    status: response.status, waitMs: 1000 * Number(response.headers.get("Retry-After") || 0),
  });
  async function request(address) {
    const before = responses.get(address);
    const headers = { "Cache-Control": "max-age=1" }; // without it, `no-store` would bypass the server's cache
    if (before?.etag) headers["If-None-Match"] = before.etag;
    if (shareToken) headers.Authorization = `Share ${shareToken}`;
    const response = await fetch(address, { headers, cache: "no-store" });
    if (response.status === 304) return before.body;
    reloadIfRefused(response);
    const body = await response.json();
    if (!response.ok) throw refused(response, body.title);
    responses.set(address, { etag: response.headers.get("ETag"), body });
    return body;
  }

  function setStatus(state, word, more) {
    if (!bar) return;
    bar.hidden = false;
    bar.dataset.state = state;
    const place = document.getElementById("live-state"); // screen readers announce it only when it changes
    if (place.textContent !== word) place.textContent = word;
    document.getElementById("live-age").textContent = more && `· ${more}`;
  }
  const ago = () => lastAt ? tr("updated {age} ago", { age: duration(Date.now() - lastAt) }) : "";
  const moment = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", timeZone: "UTC" });
  const asOfText = (text) => text ? tr("as of {time} UTC", { time: moment.format(Date.parse(text)) }) : "";

  // Queries that differ in the metric only are sent as one, so that numbers side by side are from the same data.
  function groups() {
    const found = new Map();
    for (const place of document.querySelectorAll("[data-query]")) {
      const [path, query] = place.dataset.query.split("?"), metric = path.slice(METRICS.length), every = Number(place.dataset.every || 1);
      let key = separate.has(place.dataset.query) ? place.dataset.query : `${query} ${every}`;
      while (found.get(key)?.metrics.size === MAX_METRICS && !found.get(key).metrics.has(metric)) key += " ";
      if (!found.has(key)) found.set(key, { key, query, every, metrics: new Map() });
      found.get(key).metrics.set(metric, [...(found.get(key).metrics.get(metric) || []), place]);
    }
    return [...found.values()].sort((one, two) => one.every - two.every);
  }
  async function updateGroup({ key, query, metrics }) {
    const address = `${METRICS}${[...metrics.keys()].sort().join(",")}?${query}`, before = responses.get(address)?.etag;
    requestedAt.set(key, Date.now());
    try {
      const body = await request(address);
      asOf = knownUntil(body.as_of);
      for (const each of body.answers || [body]) metrics.get(encodeURIComponent(each.metric)).forEach((place) => show(place, each));
    } catch (error) {
      const isRefused = error.status < 500 && ![408, 429].includes(error.status); // not one that may pass a moment later
      if (metrics.size > 1 && isRefused) metrics.forEach((places) => separate.add(places[0].dataset.query));
      throw error;
    }
    return !before || responses.get(address).etag !== before;
  }
  // The first group is requested each time. While its answer is unchanged, the others are unchanged too, and wait.
  async function updateNumbers() {
    const [first, ...others] = groups(), now = Date.now();
    if (!first) return;
    const results = [await updateGroup(first).then((changed) => { if (changed) changedAt = now; }, (error) => { changedAt = now; return error; })];
    const isDue = ({ key, every }) => now - (requestedAt.get(key) ?? 0) >= Math.min(every * 1000, MAX_UNCHANGED_MS) - EVERY_MS / 2
      && (!(requestedAt.get(key) > changedAt) || now - requestedAt.get(key) >= MAX_UNCHANGED_MS);
    results.push(...await Promise.all(others.filter(isDue).map((each) => updateGroup(each).catch((error) => error))));
    const failed = results.filter((each) => each instanceof Error);
    const limited = failed.find((error) => error.status === 429); // whoever says so is heard, also if others have answered
    if (limited || failed.length && failed.length === results.length) throw limited ?? failed[0];
  }

  // Regions that are not metrics are taken from the page itself, loaded again.
  async function updateRegions() {
    const now = Date.now();
    const due = [...document.querySelectorAll("[data-region]")].filter(({ id, dataset }) => now - (loadedAt.get(id) ?? openedAt) >= dataset.region * 1000 - EVERY_MS / 2);
    if (!due.length) return;
    for (const { id } of due) loadedAt.set(id, now);
    const response = await fetch(location.href, { cache: "no-store" });
    reloadIfRefused(response);
    if (!response.ok) throw refused(response);
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    for (const old of due) {
      const fresh = page.getElementById(old.id);
      if (!fresh || old.contains(document.activeElement) || String(getSelection())) continue;
      const open = [...old.querySelectorAll("details")].map((each) => each.open);
      fresh.querySelectorAll("details").forEach((each, number) => { each.open = open[number] ?? false; });
      const left = [...old.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
      old.replaceWith(document.adoptNode(fresh));
      fresh.querySelectorAll(".scroll").forEach((each, number) => { each.scrollLeft = left[number] ?? 0; });
    }
  }

  const hasWork = () => document.querySelector("[data-query], [data-region]");
  async function update() {
    clearTimeout(timer);
    if (!hasWork()) return;
    if (document.hidden) return setStatus("paused", tr("Paused in the background"), "");
    const startedAt = Date.now();
    if (startedAt >= waitUntil) {
      try {
        await Promise.all([updateNumbers(), updateRegions()]);
        lastAt = Date.now();
        if (lastAt - openedAt > lastsMs) return location.reload(); // another day has begun, and the server responds
        setStatus("live", tr("Live"), ago());
        if (bar) bar.title = asOfText(asOf);
      } catch (error) {
        const waitMs = Math.min(Math.max(error.waitMs || 0, EVERY_MS), MAX_WAIT_MS);
        waitUntil = Date.now() + waitMs;
        if (error.status === 429) setStatus("waiting", tr("Too many requests; waiting {time} before the next one", { time: duration(waitMs) }), ago());
        else setStatus("waiting", tr("No response; these are the last known numbers"), [ago(), error.message].filter(Boolean).join(": "));
      }
    }
    const tookMs = Date.now() - startedAt; // numbers of many stores are not asked for all the time
    timer = setTimeout(update, Math.max(MIN_DELAY_MS, EVERY_MS - tookMs, Math.min(TIMES_TAKEN * tookMs, MAX_PAUSE_MS)));
  }
  document.addEventListener("visibilitychange", update);

  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("[data-copy]");
    if (!button) return;
    const text = document.getElementById(button.dataset.copy);
    const status = button.parentElement.querySelector("[data-copied]");
    try {
      await navigator.clipboard.writeText(text.textContent);
      status.textContent = tr("Copied.");
    } catch {
      getSelection().selectAllChildren(text);
      status.textContent = tr("Selected: copy it with the keyboard.");
    }
  });
  globalThis.galatea = { formatted, full, knownUntil, tr };
  addEventListener("DOMContentLoaded", update);
})();
