(function () {
  "use strict";
  var bar = document.getElementById("filters");
  var status = document.getElementById("shown");
  var items = Array.prototype.slice.call(document.querySelectorAll("[data-f]"));
  var folds = Array.prototype.slice.call(document.querySelectorAll("details.fold"));
  var menus = bar ? Array.prototype.slice.call(bar.querySelectorAll("select")) : [];
  var facts = items.map(function (item) {
    return {
      a: " " + (item.getAttribute("data-a") || "") + " ",
      k: " " + (item.getAttribute("data-k") || "") + " ",
      l: item.hasAttribute("data-l") ? Number(item.getAttribute("data-l")) : -1
    };
  });

  function chosen() {
    var values = {};
    menus.forEach(function (menu) { values[menu.name] = menu.value; });
    return values;
  }

  function fits(fact, values) {
    return (!values.a || fact.a.indexOf(" " + values.a + " ") >= 0) &&
      (!values.k || fact.k.indexOf(" " + values.k + " ") >= 0) &&
      (!values.l || fact.l >= Number(values.l));
  }

  function apply() {
    var values = chosen();
    var any = Boolean(values.a || values.k || values.l);
    var count = 0;
    items.forEach(function (item, place) {
      var shown = fits(facts[place], values);
      item.hidden = !shown;
      count += shown ? 1 : 0;
    });
    folds.forEach(function (fold) {
      fold.hidden = any && !fold.querySelector("[data-f]:not([hidden])");
    });
    status.textContent = any ? count + " of " + items.length + " entries and turns shown" : "Everything is shown.";
  }

  function clear() {
    menus.forEach(function (menu) { menu.value = ""; });
    apply();
  }

  function reveal() {
    var target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) { return; }
    if (target.closest("[hidden]")) { clear(); }
    for (var box = target.parentElement; box; box = box.parentElement) {
      if (box.tagName === "DETAILS") { box.open = true; }
    }
    if (!target.hasAttribute("tabindex")) { target.setAttribute("tabindex", "-1"); }
    target.focus({ preventScroll: true });
    land(target, NaN, 20);
  }

  // What opens, or comes into view for the first time, has another height than was guessed: go there until it stays.
  function land(target, before, tries) {
    target.scrollIntoView({ behavior: "instant" });
    var top = target.getBoundingClientRect().top;
    if (tries && (tries > 12 || Math.abs(top - before) > 1)) {
      requestAnimationFrame(function () { land(target, top, tries - 1); });
    }
  }

  if (bar) {
    bar.hidden = false;
    menus.forEach(function (menu) { menu.addEventListener("change", apply); });
    document.getElementById("clear").addEventListener("click", clear);
  }
  document.addEventListener("click", function (event) {
    var link = event.target.closest && event.target.closest("a[href^='#']");
    if (link && link.getAttribute("href") === location.hash) { setTimeout(reveal, 0); }
  });
  window.addEventListener("hashchange", reveal);
  window.addEventListener("beforeprint", function () {
    document.querySelectorAll("details.print:not([open])").forEach(function (box) {
      box.open = true;
      box.classList.add("was-closed");
    });
  });
  window.addEventListener("afterprint", function () {
    document.querySelectorAll("details.was-closed").forEach(function (box) {
      box.open = false;
      box.classList.remove("was-closed");
    });
  });

  function cell(row, place) {
    var text = row.cells[place].textContent.trim();
    var number = parseFloat(text.replace(/,/g, ""));
    return { text: text.toLowerCase(), number: isNaN(number) ? -1 : number };
  }

  function sortBy(table, place, numeric) {
    var body = table.tBodies[0];
    var heads = table.tHead.rows[0].cells;
    var way = heads[place].getAttribute("aria-sort") === (numeric ? "descending" : "ascending") ? -1 : 1;
    way = numeric ? -way : way;
    var rows = Array.prototype.slice.call(body.rows);
    rows.sort(function (one, two) {
      var a = cell(one, place), b = cell(two, place);
      return way * (numeric ? a.number - b.number : a.text.localeCompare(b.text));
    });
    Array.prototype.forEach.call(heads, function (head) { head.removeAttribute("aria-sort"); });
    heads[place].setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
    rows.forEach(function (row) { body.appendChild(row); });
  }

  Array.prototype.forEach.call(document.querySelectorAll("table.sortable"), function (table) {
    Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, place) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sortBy(table, place, head.classList.contains("n")); });
    });
  });
  var finder = document.getElementById("finder");
  if (finder) {
    var find = document.getElementById("find");
    var lines = Array.prototype.slice.call(document.querySelectorAll("#conversations tbody tr"));
    finder.hidden = lines.length < 8;
    find.addEventListener("input", function () {
      var words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      var count = 0;
      lines.forEach(function (line) {
        var text = line.textContent.toLowerCase();
        line.hidden = !words.every(function (word) { return text.indexOf(word) >= 0; });
        count += line.hidden ? 0 : 1;
      });
      document.getElementById("matches").textContent = words.length ? count + " of " + lines.length : "";
    });
  }
  reveal();
}());
