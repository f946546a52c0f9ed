// What pages can do with scripts; without, every one of them still works. Foreign text is only ever put in as text.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const typing = target => target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]");
  const main = $("#main");

  // lists: j and k choose, Enter opens
  const rows = () => [...document.querySelectorAll("[data-list] a.row")];
  const choose = step => {
    const all = rows();
    if (!all.length) return false;
    const now = all.findIndex(row => row.classList.contains("chosen"));
    const next = Math.min(all.length - 1, Math.max(0, now < 0 ? 0 : now + step));
    all.forEach(row => row.classList.remove("chosen"));
    all[next].classList.add("chosen");
    all[next].focus({ preventScroll: true });
    all[next].scrollIntoView({ block: "nearest" });
    return true;
  };

  // one decision a page: a second press while the first is on its way does nothing
  let sent = false;
  const form = $("#decide");
  if (form) form.addEventListener("submit", event => {
    if (sent) event.preventDefault();
    sent = true;
    setTimeout(() => { sent = false; }, 4000);
  });

  const help = $("#keys");
  document.querySelectorAll("[data-keys]").forEach(button => {
    button.hidden = false;
    button.addEventListener("click", () => help.showModal());
  });

  document.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target) || help.open || event.repeat && event.key !== "j" && event.key !== "k") return;
    const done = act(event.key);
    if (done) event.preventDefault();
  });
  // the conversation of a finding: m goes to the next marked message below, e opens what is folded
  const transcript = $("[data-transcript]");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const TOP = 70; // px, what the bar at the top covers
  const mark = () => {
    const marked = transcript ? all("[data-marked]", transcript) : [];
    if (!marked.length) return false;
    const end = scrollY + innerHeight >= document.documentElement.scrollHeight - 2;
    const below = marked.find(item => item.getBoundingClientRect().top > TOP + 40);
    scrollBy(0, (below && !end ? below : marked[0]).getBoundingClientRect().top - TOP);
    return true;
  };
  const folds = () => all("details[data-fold]");
  const open = () => {
    if (!folds().length) return false;
    const closed = folds().some(fold => !fold.open);
    folds().forEach(fold => { fold.open = closed; });
    return true;
  };
  all("[data-open]").forEach(button => { button.hidden = false; button.addEventListener("click", open); });

  // the findings of one conversation are one reading: its text stays where it is
  const reading = $("[data-conversation]");
  const turns = () => transcript ? all("li[id]", transcript).filter(item => item.id && item.offsetParent) : [];
  if (reading && form && $("[name=back]", form).value === "/review") {
    addEventListener("pagehide", () => {
      const item = scrollY > 0 && turns().find(one => one.getBoundingClientRect().bottom > TOP);
      const where = item ? { of: reading.dataset.conversation, id: item.id, top: item.getBoundingClientRect().top } : null;
      sessionStorage.setItem("undersong-reading", JSON.stringify(where));
    });
    const before = JSON.parse(sessionStorage.getItem("undersong-reading") || "null");
    const item = before && before.of === reading.dataset.conversation && !location.hash && document.getElementById(before.id);
    if (item && item.offsetParent) scrollBy(0, item.getBoundingClientRect().top - before.top);
  }

  // what stands beside the text stays in sight, its end where it is longer than the window
  const aside = $("[data-aside]");
  if (aside) {
    const place = () => {
      const free = innerHeight - (form ? form.offsetHeight : 0) - aside.offsetHeight - 12;
      aside.style.top = `${Math.min(TOP - 10, free)}px`;
    };
    new ResizeObserver(place).observe(aside);
    addEventListener("resize", place);
  }

  // how sure the program is, without another page: what was chosen and written stays
  const reveal = $("[data-reveal]");
  if (reveal) reveal.addEventListener("click", event => {
    event.preventDefault();
    all("[data-sure]").forEach(words => { words.hidden = false; });
    $("[data-unsure]").hidden = true;
    if (form) $("[name=shown_score]", form).value = "1";
  });

  const act = key => {
    if (key === "m") return mark();
    if (key === "e") return open();
    if (key === "?") { help.showModal(); return true; }
    if (key === "/") { const box = $("#q-top"); box.focus(); box.select(); return true; }
    if (key === "n" && form) { $("[data-why]").open = true; $("#note").focus(); return true; }
    const reason = form && /^[0-9]$/.test(key) ? $(`[data-reason="${key}"]`) : null;
    if (reason) { $("[data-why]").open = true; reason.checked = !reason.checked; return true; }
    const element = /^[a-z]$/.test(key) ? $(`[data-key~="${key}"]`) : null;
    if (element) { element.click(); return true; }
    if (key === "j") return choose(1);
    if (key === "k") return choose(-1);
    return false;
  };

  // drop a file anywhere on the first page
  const drop = $("[data-drop]");
  if (drop) {
    const state = $("[data-drop-state]");
    const input = $("input[type=file]", drop);
    let depth = 0;
    const send = files => {
      if (files.length !== 1) { state.textContent = "One file at a time, please; a folder as a ZIP."; return; }
      const transfer = new DataTransfer();
      transfer.items.add(files[0]);
      input.files = transfer.files;
      state.textContent = `Taking in ${files[0].name} …`;
      drop.requestSubmit();
    };
    addEventListener("dragenter", event => { event.preventDefault(); depth += 1; drop.classList.add("over"); });
    addEventListener("dragleave", () => { depth -= 1; if (depth <= 0) { depth = 0; drop.classList.remove("over"); } });
    addEventListener("dragover", event => event.preventDefault());
    addEventListener("drop", event => {
      event.preventDefault();
      depth = 0;
      drop.classList.remove("over");
      if (event.dataTransfer) send(event.dataTransfer.files);
    });
    drop.addEventListener("submit", () => { state.textContent = "Taking in the file …"; });
  }

  // an audit under way
  const job = $("[data-job]");
  if (job) {
    const bar = $("[data-bar]");
    const events = new EventSource(job.dataset.job);
    events.addEventListener("progress", event => {
      const news = JSON.parse(event.data);
      job.textContent = news.words;
      if (news.percent !== null) bar.value = news.percent;
      if (news.done || news.failed) {
        events.close();
        if (news.done) location.replace(job.dataset.result); else location.reload();
      }
    });
  }

  // what is new in the store
  const live = $("[data-live]");
  if (live) {
    const say = (on, text) => { live.classList.toggle("on", on); live.textContent = text; };
    const line = (list, href, who, text) => {
      const item = document.createElement("li");
      item.className = "new";
      const link = document.createElement("a");
      link.href = href;
      link.textContent = who;
      const words = document.createElement("bdi");
      words.textContent = text;
      item.append(link, ": ", words);
      list.prepend(item);
      while (list.children.length > 200) list.lastChild.remove();
    };
    const events = new EventSource(live.dataset.live);
    say(false, "Connecting …");
    events.addEventListener("hello", () => say(true, "Listening: what is written into the store appears here."));
    events.addEventListener("trouble", event => say(false, JSON.parse(event.data).what));
    events.addEventListener("error", () => say(false, "The server does not answer; trying again."));
    events.addEventListener("news", event => {
      const news = JSON.parse(event.data);
      for (const [name, number] of Object.entries(news.counts)) {
        const tile = $(`[data-count="${name}"]`);
        if (tile) tile.textContent = number.toLocaleString("en-US");
      }
      for (const each of news.messages) line($("[data-stream=messages]"), each.href, each.who, each.text);
      for (const each of news.findings) {
        line($("[data-stream=findings]"), each.href, `${each.new ? "new" : "changed"}, ${each.level}`, `${each.text} (${each.sure})`);
      }
    });
    addEventListener("pagehide", () => events.close());
  }
})();
