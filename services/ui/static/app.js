// Everything works without this file, apart from progress, live status and copied links.
"use strict";
(() => {
  const root = document.documentElement;
  const $ = (selector, from = document) => from.querySelector(selector);
  const $$ = (selector, from = document) => [...from.querySelectorAll(selector)];
  const say = (text) => { $("#say").textContent = text; };

  // --- times in the viewer's zone, exact on hover -------------------------------------------
  const utcDay = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeZone: "UTC" });
  const dayAndClock = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
  const ago = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
  const spoken = (when) => {
    const seconds = (when - Date.now()) / 1000;
    if (Math.abs(seconds) < 60) return ago.format(Math.round(seconds), "second");
    if (Math.abs(seconds) < 3600) return ago.format(Math.round(seconds / 60), "minute");
    if (when.toDateString() === new Date().toDateString()) return clock.format(when);
    return dayAndClock.format(when);
  };
  const times = () => $$("time[datetime]").forEach((tag) => {
    const when = new Date(tag.dateTime);
    if (Number.isNaN(when.valueOf())) return;
    // A day of validity is a day of the calendar, the same for everybody.
    tag.textContent = tag.dataset.kind === "day" ? utcDay.format(when) : spoken(when);
    tag.title = exact.format(when);
  });

  // --- theme ---------------------------------------------------------------------------------
  const showTheme = () => $$("[data-theme-choice]").forEach((button) => {
    const on = button.dataset.themeChoice === (root.dataset.theme ?? "auto");
    button.setAttribute("aria-pressed", String(on));
  });
  const chooseTheme = (choice) => {
    if (choice === "auto") delete root.dataset.theme;
    else root.dataset.theme = choice;
    try {
      if (choice === "auto") localStorage.removeItem("kb.theme");
      else localStorage.setItem("kb.theme", choice);
    } catch { /* not kept, then */ }
    showTheme();
  };

  // --- what the server drew for scripts only -------------------------------------------------
  const wake = () => {
    times();
    $$("[data-copy]").forEach((button) => { button.hidden = !navigator.clipboard; });
    $$("[data-expand]").forEach((button) => {
      const text = document.getElementById(button.dataset.expand);
      const long = text.scrollHeight > text.clientHeight + 4;
      if (long || text.classList.contains("open")) button.hidden = false;
      text.classList.toggle("long", long);
    });
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    const menu = $("details.menu[open]");
    if (menu && !menu.contains(event.target)) menu.open = false;
    if (!button) return;
    if (button.dataset.themeChoice) chooseTheme(button.dataset.themeChoice);
    if (button.dataset.expand) expand(button);
    if (button.dataset.copy) copy(button);
    if (button.dataset.retry) retry(button.closest(".row"));
  });

  const swapLabel = (button, key) => {
    const now = button.textContent;
    button.textContent = button.dataset[key];
    button.dataset[key] = now;
  };
  const expand = (button) => {
    document.getElementById(button.dataset.expand).classList.toggle("open");
    swapLabel(button, "less");
  };
  const copy = async (button) => {
    await navigator.clipboard.writeText(new URL(button.dataset.copy, location.href).href);
    say(button.dataset.done);
    swapLabel(button, "done");
    setTimeout(() => swapLabel(button, "done"), 1500);
  };

  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      const menu = $("details.menu[open]");
      if (menu) { menu.open = false; $("summary", menu).focus(); }
    }
    const typing = event.target.closest("input, textarea, select, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    const box = $("#q");
    if (box) { box.focus(); box.select(); } else location.href = "/";
  });

  // --- live status ---------------------------------------------------------------------------
  // "kb:changed" when anything happened, "kb:doc:<id>" when something happened to that document.
  const touched = new Set();
  let changedAt = 0;
  let waiting = 0;
  let settling = 0;
  const tell = (documents) => {
    changedAt = Date.now();
    document.body.dispatchEvent(new CustomEvent("kb:changed"));
    documents.forEach((id) => document.body.dispatchEvent(new CustomEvent(`kb:doc:${id}`)));
  };
  const changed = (event) => {
    try { touched.add(JSON.parse(event.data).data.document_id); } catch { /* not about a document */ }
    clearTimeout(waiting);
    clearTimeout(settling);
    // One refresh a second is enough, and the last event always gets one; then another, since an
    // event may be here before the lists know of it.
    waiting = setTimeout(() => {
      const documents = [...touched];
      touched.clear();
      tell(documents);
      settling = setTimeout(() => tell(documents), 1500);
    }, Math.max(150, 1000 - (Date.now() - changedAt)));
  };
  const showLive = (on) => $$("[data-live]").forEach((tag) => {
    tag.textContent = on ? tag.dataset.on : tag.dataset.off;
    tag.classList.toggle("on", on);
  });
  let stream = null;
  const listen = () => {
    const tag = $("[data-live]");
    if (!tag || stream) return;
    // The browser itself resumes after the last event that it saw.
    stream = new EventSource(`/events?after=${encodeURIComponent(tag.dataset.after)}`);
    stream.addEventListener("open", () => showLive(true));
    stream.addEventListener("error", () => {
      showLive(false);
      // The browser tries again by itself unless the answer was an error.
      if (stream.readyState === EventSource.CLOSED) {
        stream = null;
        setTimeout(listen, 5000);
      }
    });
    ["message", ...tag.dataset.live.split(" ")].forEach((type) => stream.addEventListener(type, changed));
  };

  // --- upload --------------------------------------------------------------------------------
  const form = $("#upload");
  const KEPT = "kb.uploads";
  const kept = () => {
    try { return JSON.parse(sessionStorage.getItem(KEPT)) ?? []; } catch { return []; }
  };
  const keep = (entry) => {
    try { sessionStorage.setItem(KEPT, JSON.stringify([entry, ...kept()].slice(0, 100))); } catch { /* no */ }
  };
  const queue = [];
  const files = new WeakMap();
  let sending = false;

  const addRow = (name) => {
    const row = $("#row").content.firstElementChild.cloneNode(true);
    $(".name", row).textContent = name;
    $("#rows").prepend(row);
    $("#no-rows").hidden = true;
    return row;
  };
  const setWord = (row, word, tone = "busy") => {
    const stage = $(".stage", row);
    stage.replaceChildren();
    const chip = document.createElement("span");
    chip.className = `chip ${tone}`;
    chip.append(Object.assign(document.createElement("span"), { className: "dot" }), word);
    stage.append(chip);
    return stage;
  };
  const addLink = (stage, version) => {
    const link = document.createElement("a");
    link.href = `/ui/documents/${encodeURIComponent(version)}?new`;
    link.textContent = form.dataset.open;
    stage.append(link);
  };
  const fail = (row, why, again) => {
    setWord(row, form.dataset.failed, "bad");
    $("progress", row).hidden = true;
    const line = $(".why", row);
    line.hidden = false;
    line.textContent = why;
    if (again) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "plain" });
      button.dataset.retry = "1";
      button.textContent = form.dataset.retry;
      line.append(" ", button);
    }
    say(`${$(".name", row).textContent}: ${form.dataset.failed}`);
  };
  const retry = (row) => {
    $(".why", row).hidden = true;
    $("progress", row).hidden = false;
    enqueue(files.get(row), row);
  };
  const enqueue = (file, row = addRow(file.name)) => {
    files.set(row, file);
    setWord(row, form.dataset.queued);
    queue.push({ file, row });
    next();
  };
  const next = () => {
    if (sending || !queue.length) return;
    sending = true;
    const { file, row } = queue.shift();
    send(file, row).finally(() => { sending = false; next(); });
  };
  const send = (file, row) => new Promise((resolve) => {
    const body = new FormData();
    // Fields before the file: the server knows where it belongs before the bytes come.
    for (const name of ["project", "valid_from"]) {
      const value = form.elements[name].value.trim();
      if (value) body.append(name, value);
    }
    body.append("file", file, file.name);
    const request = new XMLHttpRequest();
    const bar = $("progress", row);
    setWord(row, form.dataset.sending);
    request.open("POST", "/documents");
    request.setRequestHeader("X-CSRF-Token", $("meta[name=csrf]").content);
    request.setRequestHeader("Accept", "application/json");
    request.upload.addEventListener("progress", (event) => {
      if (event.lengthComputable) { bar.max = event.total; bar.value = event.loaded; }
    });
    request.addEventListener("load", () => { received(request, row, file.name); resolve(); });
    request.addEventListener("error", () => { fail(row, form.dataset.interrupted, true); resolve(); });
    request.send(body);
  });
  const received = (request, row, name) => {
    let answer = {};
    try { answer = JSON.parse(request.responseText); } catch { /* an answer that is not ours */ }
    if (request.status === 401) { location.reload(); return; }
    if (request.status >= 400 || !answer.job_id) {
      fail(row, answer.detail || answer.title || String(request.status), request.status >= 500);
      return;
    }
    if (answer.duplicate_of) {
      addLink(setWord(row, form.dataset.duplicate, "mute"), answer.version_id);
      $("progress", row).hidden = true;
      return;
    }
    keep({ job: answer.job_id, name });
    follow(answer.job_id, row);
  };
  const follow = (job, row) => {
    const bar = $("progress", row);
    let asking = false;
    const ask = async () => {
      if (asking) return;
      asking = true;
      try {
        const reply = await fetch(`/ui/jobs/${encodeURIComponent(job)}`, { headers: { "HX-Request": "true" } });
        // 404: the projection has not seen the job yet.
        if (reply.ok) show(await reply.text());
      } catch {
        // Offline: the next event or tick asks again.
      } finally {
        asking = false;
      }
    };
    const show = (html) => {
      const stage = new DOMParser().parseFromString(html, "text/html").querySelector(".stage");
      if (!stage) return;
      bar.max = Number(stage.dataset.steps);
      bar.value = Number(stage.dataset.step);
      $(".stage", row).replaceWith(document.adoptNode(stage));
      if (stage.dataset.done === "yes") stop();
    };
    const stop = () => {
      bar.hidden = true;
      clearInterval(ticking);
      document.body.removeEventListener("kb:changed", ask);
    };
    const ticking = setInterval(ask, 3000);
    document.body.addEventListener("kb:changed", ask);
    ask();
  };
  const startUpload = () => {
    const input = $("#files");
    const take = (list) => [...list].forEach((file) => enqueue(file));
    input.addEventListener("change", () => { take(input.files); input.value = ""; });
    form.addEventListener("submit", (event) => event.preventDefault());
    const drop = $(".drop");
    let depth = 0;
    const over = (by) => { depth = by ? Math.max(0, depth + by) : 0; drop.classList.toggle("over", depth > 0); };
    addEventListener("dragenter", (event) => { event.preventDefault(); over(1); });
    addEventListener("dragleave", () => over(-1));
    addEventListener("dragover", (event) => event.preventDefault());
    addEventListener("drop", (event) => { event.preventDefault(); over(0); take(event.dataTransfer.files); });
    // After a reload the rows of this window come back, newest first.
    kept().reverse().forEach(({ job, name }) => follow(job, addRow(name)));
  };

  // --- start ---------------------------------------------------------------------------------
  $$(".themes").forEach((set) => { set.hidden = false; });
  showTheme();
  wake();
  listen();
  // What is under way is looked at even when no event stream can be had.
  setInterval(() => {
    if ($("#documents progress, #doc progress")) tell($$("#doc").map((doc) => doc.dataset.document));
  }, 3000);
  if (form) startUpload();
  if (matchMedia("(max-width: 60rem)").matches) {
    $$(".outline > details, .side > details").forEach((part) => { part.open = false; });
  }
  document.addEventListener("htmx:after:swap", () => {
    wake();
    listen();
    const count = $("#results .count strong, #results .empty strong");
    if (count) say(count.textContent);
  });
  document.addEventListener("htmx:before:request", () => $("#results")?.setAttribute("aria-busy", "true"));
  document.addEventListener("htmx:finally:request", () => $("#results")?.setAttribute("aria-busy", "false"));
})();
