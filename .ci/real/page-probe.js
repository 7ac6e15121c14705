// Looks at a report page as a reader does and tells what is wrong with it. The reader scrolls, jumps, zooms, changes
// the language and prints; idle time comes when the probe gives it, so that no way to a figure hides that another is
// shut.
const jobs = [];
window.requestIdleCallback = (job) => jobs.push(job);
const rest = () => { while (jobs.length) jobs.shift()(); };
const frames = async (n = 3) => { for (let i = 0; i < n; i++) await new Promise((next) => requestAnimationFrame(() => setTimeout(next, 0))); };
const places = () => [...document.querySelectorAll("main:not([hidden]) .plot")];
const empty = (all = places()) => all.filter((place) => !place.querySelector("svg.main-svg")).map((place) => place.dataset.figure);
const figures = JSON.parse(document.getElementById("figures").textContent);
const speak = (lang) => document.querySelector(`button[data-lang="${lang}"]`).click();
const faults = [];
const hold = (what, list) => { if (list.length) faults.push(`${what}: ${list.join(", ")}`); };

window.probe = async () => {
  const ms = performance.getEntriesByType("navigation")[0].loadEventEnd;
  const [paint] = performance.getEntriesByName("first-contentful-paint");
  const all = places();
  document.documentElement.style.scrollBehavior = "auto";
  try {
    await frames();
    const far = (place) => place.getBoundingClientRect().top > innerHeight + 900;
    hold("drawn before anyone comes near", all.filter(far).filter((place) => place.dataset.drawn).map((place) => place.dataset.figure));

    // A link to the last section that has a figure.
    const last = all.at(-1);
    location.hash = last.closest("section").id;
    last.scrollIntoView();
    await frames();
    hold("not drawn after a jump", empty([last]));

    // A figure over time is zoomed, then the others are scrolled to.
    scrollTo(0, 0);
    const first = all.find((place) => figures[place.dataset.figure].time);
    if (first) {
      first.scrollIntoView();
      await frames();
      await Plotly.relayout(first, { "xaxis.range[0]": 1, "xaxis.range[1]": 2 });
    }
    for (const place of all) { place.scrollIntoView(); await frames(); }
    hold("not drawn by scrolling", empty());
    const group = first && figures[first.dataset.figure].time;
    const unlike = (place) => figures[place.dataset.figure].time === group && String(place.layout.xaxis.range) !== "1,2";
    if (first) hold("another time axis than the zoomed figure", places().filter(unlike).map((place) => place.dataset.figure));

    // Idle time alone, then paper alone, each on figures that nothing has drawn yet.
    scrollTo(0, 0);
    const other = document.documentElement.lang === "en" ? "zh" : "en";
    speak(other);
    rest();
    hold("not drawn in idle time", empty());
    if (first) hold("zoom lost with the language", places().filter(unlike).map((place) => place.dataset.figure));
    places().forEach((place) => { Plotly.purge(place); delete place.dataset.drawn; });
    dispatchEvent(new Event("beforeprint"));
    await frames();
    hold("not on paper", empty());
    if (getComputedStyle(document.documentElement).colorScheme !== "light") faults.push("paper is not white");
    dispatchEvent(new Event("afterprint"));
  } catch (error) {
    faults.push(String(error.stack ?? error));
  }
  const told = (figure) => figure.querySelector("details.data") || figure.parentElement.querySelector(".scroll table");
  hold("without a table", [...document.querySelectorAll("main:not([hidden]) figure")].filter((figure) => !told(figure)).map((figure) => figure.id));
  hold("loaded", performance.getEntriesByType("resource").map((entry) => entry.name).filter((name) => !name.startsWith("data:")));
  hold("errors", window.seen);
  const points = Object.values(figures).flatMap((figure) => figure.data).reduce((sum, trace) => sum + trace.x.length, 0);
  return { ms, painted: paint?.startTime ?? null, figures: all.length, points, elements: document.querySelectorAll("*").length, faults };
};
