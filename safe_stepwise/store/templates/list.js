// A list beside the details of what is chosen from it: filters above, the list, its keys.
// A page's own scripts say what a `row(place)` of the list is, which place is in view (`inView`,
// null for none), how to `openPlace` another, and what to `refresh` when a filter changes.

const PAGE = 200;
const filters = {};
let listed = [];
let drawn = 0;

/** Fill the bar: a select for each choice (key, label, values, test, names of values), and a search over `haystack(item)`. */
function makeFilters(items, choices, haystack, placeholder) {
  const bar = byId("filters");
  const haystacks = new Map();
  for (const [key, label, values, fits, names] of choices) {
    const select = make("select", { id: `filter-${key}` });
    select.append(new Option("all", ""));
    values.forEach((value, place) => {
      const count = items.filter((item) => fits(item, value)).length;
      const name = names?.get(value) ?? (value || "none");
      select.append(new Option(plain(`${name} (${number(count)})`), String(place)));
    });
    select.addEventListener("change", refresh);
    bar.append(make("div", {}, make("label", { for: select.id }, label), select));
    filters[key] = (item) => select.value === "" || fits(item, values[Number(select.value)]);
  }
  const search = make("input", { id: "filter-text", type: "search", spellcheck: "false", placeholder });
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(refresh, 120); });
  bar.append(make("div", { class: "wide" }, make("label", { for: search.id }, "Search"), search));
  filters.text = (item) => {
    const wanted = search.value.trim().toLowerCase();
    if (wanted === "") return true;
    if (!haystacks.has(item)) haystacks.set(item, haystack(item).join("\n").toLowerCase());
    return haystacks.get(item).includes(wanted);
  };
  const clear = make("button", { type: "button", id: "clear" }, "Clear");
  clear.addEventListener("click", () => {
    bar.querySelectorAll("select, input").forEach((control) => { control.value = ""; });
    refresh();
  });
  bar.append(clear);
}

/** Say how many are listed: above the list, and where the filters are folded. */
function drawCount(text) {
  byId("count").textContent = text;
  byId("folded").textContent = `Filters · ${text}`;
}

/** What stays in sight while the details are read: where it is from, the question, and what came of it. */
function headline(from, question, ...outcome) {
  const turn = (label, words, act) => {
    const button = make("button", { type: "button", "aria-label": words }, label);
    button.addEventListener("click", act);
    return button;
  };
  return make("header", { class: "headline" },
    make("p", { class: "meta" }, from),
    make("nav", { "aria-label": "Other questions" },
      turn("‹", "Previous question", () => move(-1)), turn("›", "Next question", () => move(1)),
      turn("List", "To the list", () => byId("questions").scrollIntoView())),
    quoted("h2", question), make("p", { class: "outcome" }, outcome));
}

/** Put something new in view, from its top. */
function showDetails(...parts) {
  const article = byId("details");
  article.replaceChildren(...parts.filter((part) => part !== ""));
  markCurrent();
  if (article.getBoundingClientRect().top < 0) article.scrollIntoView();
}

const fitsFilters = (item) => Object.values(filters).every((fits) => fits(item));

/** List these places, from the first. */
function list(places) {
  listed = places;
  drawn = 0;
  byId("list").replaceChildren();
  drawMore();
}

function drawMore() {
  const next = listed.slice(drawn, drawn + PAGE);
  byId("list").append(...next.map(row));
  drawn += next.length;
  byId("more").hidden = drawn >= listed.length;
  markCurrent();
}

/** A link of the list that opens a place without leaving the page. */
function entry(place, href, ...parts) {
  const link = make("a", { href }, parts);
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    openPlace(place);
  });
  return make("li", { "data-place": place }, link);
}

function markCurrent() {
  const items = byId("list");
  items.querySelectorAll("[aria-current]").forEach((link) => link.removeAttribute("aria-current"));
  if (inView() === null) return null;
  const link = items.querySelector(`li[data-place="${inView()}"] > a`);
  link?.setAttribute("aria-current", "true");
  return link;
}

/** Scroll the list, and nothing else, until the place in view is in it. */
function revealCurrent() {
  const at = listed.indexOf(inView());
  while (at >= drawn) drawMore();
  const link = markCurrent();
  if (!link) return;
  const pane = byId("questions");
  const [item, view] = [link.getBoundingClientRect(), pane.getBoundingClientRect()];
  const [top, bottom] = [Math.max(view.top, 0), Math.min(view.bottom, window.innerHeight)];
  if (item.top < top) pane.scrollTop -= top - item.top;
  else if (item.bottom > bottom) pane.scrollTop += item.bottom - bottom;
}

/** Open the place before or behind the one in view. */
function move(by) {
  if (listed.length === 0) return;
  const at = listed.indexOf(inView());
  const to = at < 0 ? 0 : Math.min(Math.max(at + by, 0), listed.length - 1);
  while (drawn <= to) drawMore();
  openPlace(listed[to], true);
  markCurrent().focus({ preventScroll: true });
  revealCurrent();
}

document.addEventListener("keydown", (event) => {
  const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const at = document.activeElement;
  const free = at === document.body || byId("questions").contains(at);
  if (by === undefined || !free || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  move(by);
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address keeps naming what is in view
  byId("details").focus();
});
byId("more").addEventListener("click", drawMore);
// Where there is little room, the filters are folded, and the list scrolls with the page below the details.
const narrow = matchMedia("(max-width: 60rem)");
const fold = () => { byId("filtering").open = !narrow.matches; };
narrow.addEventListener("change", fold);
fold();
new IntersectionObserver((seen) => { if (seen.some((one) => one.isIntersecting)) drawMore(); },
  { root: narrow.matches ? null : byId("questions"), rootMargin: "400px" }).observe(byId("more"));
