"use strict";
(function () {
  const root = document.documentElement;
  const themes = [["", "as the system"], ["light", "light"], ["dark", "dark"]];
  const shown = document.getElementById("theme-name");
  let theme = 0;
  function applyTheme() {
    if (themes[theme][0]) root.dataset.theme = themes[theme][0]; else delete root.dataset.theme;
    shown.textContent = themes[theme][1];
  }
  try { theme = Math.max(0, themes.findIndex((t) => t[0] === localStorage.getItem("theme"))); } catch (e) { theme = 0; }
  document.getElementById("theme").addEventListener("click", () => {
    theme = (theme + 1) % themes.length;
    applyTheme();
    try { localStorage.setItem("theme", themes[theme][0]); } catch (e) { /* a page from disk may keep nothing */ }
  });
  applyTheme();

  const data = JSON.parse(document.getElementById("data").textContent);
  if (!document.getElementById("table")) return;
  const STEP = 100;
  const byId = (id) => document.getElementById(id);
  const counts = new Intl.NumberFormat("en");

  function size(bytes) {
    if (bytes < 1000) return bytes + " B";
    for (const unit of ["kB", "MB", "GB", "TB", "PB"]) {
      bytes /= 1000;
      if (bytes < 999.95 || unit === "PB") return bytes.toFixed(1) + " " + unit;
    }
  }

  // a row: number of the topic, partition, directory, status, reason code, reason, sizes
  const logs = data.rows.map((row) => {
    const log = {};
    data.fields.forEach((name, i) => { log[name] = row[i]; });
    log.topic = data.topics[log.topic];
    log.name = log.topic + "-" + log.partition;
    log.dir = data.dirs[log.dir];
    log.status = data.statuses[log.status];
    log.code = log.code < 0 ? "" : data.codes[log.code];
    log.reason = log.reason < 0 ? "" : data.reasons[log.reason];
    log.logs = 1;
    log.text = (log.name + "\n" + log.reason + "\n" + log.code + "\n" + log.status).toLowerCase();
    return log;
  });
  // sizes after a run are null where they are not known, and so is a sum with one of them
  const afters = data.is_run ? ["after", "clean_after", "dirty_after", "waiting_after", "active_after"] : [];
  const summed = ["total", "clean", "dirty", "waiting", "active", "gain", "logs", ...afters];
  const sizes = data.is_run ? [["total", "Before"], ["after", "After"]] : [["total", "Size"]];
  const drawn = ["bar", data.is_run ? "Before → after" : "Sections"];
  const columns = {
    log: [["name", "Log"], ["status", "Status"], ...sizes, ["dirty", "Dirty"], ["gain", data.gain], drawn],
    topic: [["name", "Topic"], ["logs", "Logs"], ...sizes, ["dirty", "Dirty"], ["gain", data.gain], drawn],
  };
  const numbers = new Set(["total", "after", "dirty", "gain", "logs"]);
  const moods = { "cleaned": "good", "would-clean": "good", "to-clean": "good", "set-aside": "warn", "failed": "bad" };
  const state = { sort: "gain", down: true, limit: STEP };
  const collator = new Intl.Collator("en", { numeric: true });

  function element(tag, className, text) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  }

  function fill(id, values) {
    const select = byId(id);
    for (const value of values) select.append(new Option(value, value));
  }

  function wanted() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const status = byId("status").value, reason = byId("reason").value, dir = byId("dir").value;
    return logs.filter((log) => (!status || log.status === status) && (!reason || log.code === reason) &&
      (!dir || log.dir === dir) && words.every((word) => log.text.includes(word)));
  }

  function rolledUp(found) {
    const topics = new Map();
    for (const log of found) {
      let topic = topics.get(log.topic);
      if (!topic) { topic = { name: log.topic, reason: "", code: "" }; summed.forEach((n) => { topic[n] = 0; }); topics.set(log.topic, topic); }
      summed.forEach((n) => { topic[n] = topic[n] === null || log[n] === null ? null : topic[n] + log[n]; });
    }
    return [...topics.values()];
  }

  function compare(a, b) {
    const [x, y] = [a, b].map((row) => row[state.sort] === null ? -1 : row[state.sort]);
    const order = typeof x === "number" ? x - y : collator.compare(x, y);
    return (state.down ? -order : order) || collator.compare(a.name, b.name);
  }

  function sections(row) {
    const before = row.clean + row.dirty + row.waiting + row.active;
    const longest = Math.max(before, row.after || 0);
    const both = element("div", "both");
    both.append(section(row, "", before, longest, data.is_run ? "before: " : ""));
    if (data.is_run && row.after !== null) both.append(section(row, "_after", row.after, longest, "after: "));
    return both;
  }

  function section(row, when, whole, longest, words_before) {
    const bar = element("div", "mini");
    bar.style.width = (longest ? 100 * whole / longest : 100) + "%";
    const told = [];
    for (const [kind, words] of [["clean", "clean"], ["dirty", "dirty"], ["waiting", "has to wait"], ["active", "active or not looked into"]]) {
      const bytes = row[kind + when];
      if (!bytes) continue;
      const part = element("i", kind);
      part.style.width = (100 * bytes / whole) + "%";
      bar.append(part);
      told.push(size(bytes) + " " + words);
    }
    bar.title = words_before + (told.join(", ") || "empty");
    bar.setAttribute("role", "img");
    bar.setAttribute("aria-label", bar.title);
    return bar;
  }

  function line(row, by) {
    const tr = element("tr");
    for (const [name, title] of columns[by]) {
      const td = element("td", numbers.has(name) ? "n" : name);
      if (name === "name") {
        td.append(element("span", "", row.name));
        if (row.dir && data.dirs.length > 1) td.append(element("small", "", row.dir));
        if (row.reason) td.append(element("small", "", row.reason));
      } else if (name === "status") {
        td.append(element("span", "chip " + (moods[row.status] || ""), row.code || row.status));
      } else if (name === "bar") {
        td.append(sections(row));
      } else {
        td.dataset.name = title;
        td.append(element("span", "", name === "logs" ? counts.format(row.logs) : row[name] === null ? "not known" : size(row[name])));
      }
      tr.append(td);
    }
    return tr;
  }

  function show() {
    const by = byId("by").value;
    const found = wanted();
    const rows = (by === "topic" ? rolledUp(found) : found).sort(compare);
    const heads = byId("heads");
    const focused = document.activeElement && document.activeElement.dataset ? document.activeElement.dataset.sort : null;
    heads.replaceChildren(...columns[by].map(([name, title]) => {
      const th = element("th", numbers.has(name) ? "n" : "");
      th.scope = "col";
      if (name === "bar") { th.className = "unsortable"; const b = element("button", "", title); b.disabled = true; th.append(b); return th; }
      const button = element("button", "", title);
      button.type = "button";
      button.dataset.sort = name;
      if (name === state.sort) th.setAttribute("aria-sort", state.down ? "descending" : "ascending");
      button.addEventListener("click", () => {
        state.down = state.sort === name ? !state.down : numbers.has(name);
        state.sort = name;
        show();
      });
      th.append(button);
      return th;
    }));
    if (focused) { const again = heads.querySelector("[data-sort=" + focused + "]"); if (again) again.focus(); }
    byId("rows").replaceChildren(...rows.slice(0, state.limit).map((row) => line(row, by)));
    const bytes = found.reduce((sum, log) => sum + log.total, 0);
    byId("count").textContent = counts.format(found.length) + " of " + counts.format(logs.length) + " logs, " + size(bytes);
    byId("more").hidden = rows.length <= state.limit;
    byId("more").textContent = "Show more of " + counts.format(rows.length - Math.min(state.limit, rows.length));
  }

  fill("status", [...new Set(logs.map((log) => log.status))].sort());
  fill("reason", [...new Set(logs.map((log) => log.code))].filter(Boolean).sort());
  fill("dir", data.dirs);
  byId("dir-label").hidden = data.dirs.length < 2;
  byId("search").addEventListener("input", () => { state.limit = STEP; show(); });
  for (const id of ["status", "reason", "dir", "by"]) byId(id).addEventListener("change", () => {
    state.limit = STEP;
    if (id === "by" && !columns[byId("by").value].some(([name]) => name === state.sort)) { state.sort = "gain"; state.down = true; }
    show();
  });
  byId("more").addEventListener("click", () => { state.limit += 10 * STEP; show(); });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) { event.preventDefault(); byId("search").focus(); }
    if (event.key === "Escape" && document.activeElement === byId("search")) { byId("search").value = ""; show(); }
  });
  show();
  root.dataset.ready = "yes";
})();
