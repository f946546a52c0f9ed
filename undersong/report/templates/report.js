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
    target.scrollIntoView();
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
  reveal();
}());
