// Draws the figures, and switches language and theme. The figures are data: a string "$name" is the colour --c-name
// of the style sheet, an object {en, zh} is a text.
(() => {
  "use strict";
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const narrow = () => window.innerWidth < 600;
  const store = {
    get(key) { try { return localStorage.getItem("precipice-" + key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem("precipice-" + key, value); } catch { /* a private window */ } },
  };

  const probe = document.createElement("span");
  probe.hidden = true;
  document.body.append(probe);
  function colour(name) {
    probe.style.color = `var(--c-${name})`;
    return getComputedStyle(probe).color;
  }

  function resolved(node, lang) {
    if (typeof node === "string") return node.startsWith("$") ? colour(node.slice(1)) : node;
    if (Array.isArray(node)) return typeof node[0] === "number" || node[0] === null ? node : node.map((item) => resolved(item, lang));
    if (node === null || typeof node !== "object") return node;
    if ("en" in node && "zh" in node) return node[lang];
    return Object.fromEntries(Object.entries(node).map(([key, value]) => [key, resolved(value, lang)]));
  }

  function layoutOf(figure, lang) {
    const small = narrow();
    const layout = resolved({ ...figure.layout, ...(small && figure.narrow?.layout) }, lang);
    const axis = { gridcolor: colour("rule"), linecolor: colour("rule"), zerolinecolor: colour("rule"), automargin: true, separatethousands: true };
    for (const key of Object.keys(layout)) {
      if (!/^[xy]axis/.test(key)) continue;
      layout[key] = { ...axis, ...layout[key] };
      if (typeof layout[key].title === "string") layout[key].title = { text: layout[key].title, standoff: 8 };
      if (small && key.startsWith("y")) { layout[key].title = undefined; layout[key].nticks ??= 5; }
      if (small && key.startsWith("x") && !layout[key].tickvals) layout[key].nticks ??= 5;
    }
    // Two axes beside each other need more than a tenth of a narrow figure (a phone, a sheet of paper).
    if (layout.yaxis3?.overlaying && layout.xaxis.domain && window.innerWidth < 1000) layout.xaxis.domain = [0, small ? 0.82 : 0.86];
    // Lengths of the names in the legend, a Chinese letter counting twice. On a phone they stand in two columns where
    // they are short enough; elsewhere a long legend stays clear of the buttons above it.
    const length = (name) => [...name].reduce((sum, letter) => sum + (letter > "\u2e80" ? 2 : 1), 0);
    const names = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => length(trace.name[lang] ?? trace.name));
    const columns = small && names.every((name) => name <= 21);
    const crowded = names.reduce((sum, name) => sum + name + 7, 0) > 100;
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      separators: ".,",
      font: { family: getComputedStyle(document.body).fontFamily, size: small ? 11 : 12.5, color: colour("ink") },
      margin: small ? { l: 36, r: 30, t: 30, b: 34 } : { l: 54, r: 54, t: crowded ? 54 : 34, b: 44 },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)", ...(columns && { entrywidth: 0.48, entrywidthmode: "fraction" }) },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: colour("faint"), activecolor: colour("ink") },
      hovermode: "x unified",
      hoverlabel: { bgcolor: colour("paper"), bordercolor: colour("rule"), font: { color: colour("ink") } },
      ...layout,
    };
  }

  const config = () => ({
    responsive: true,
    displayModeBar: narrow() ? false : "hover",
    displaylogo: false,
    modeBarButtonsToRemove: ["lasso2d", "select2d", "autoScale2d"],
    showTips: false,
  });

  // plotly.js is text until a figure needs it: the browser would run it before the page answers.
  function library() {
    if (!window.Plotly) {
      const script = document.createElement("script");
      script.textContent = document.getElementById("plotly").textContent;
      document.head.append(script);
    }
    return window.Plotly;
  }

  function draw(place) {
    const figure = figures[place.dataset.figure];
    if (!figure) return;
    const lang = place.closest("main").dataset.lang;
    if (figure.narrow) place.style.height = (narrow() ? figure.narrow.height : figure.height) + "px";
    const drawn = place.dataset.drawn;
    place.dataset.drawn = "yes";
    const layout = layoutOf(figure, lang);
    if (figure.time) Object.assign(layout.xaxis, zoom[figure.time]);
    const data = resolved(figure.data, lang);
    // On a phone more than nine bars in groups have no room for their numbers; the table has them.
    if (narrow() && layout.barmode === "group" && data.reduce((sum, trace) => sum + (trace.type === "bar" ? trace.x.length : 0), 0) > 9) {
      for (const trace of data) if (trace.type === "bar") trace.textposition = "none";
    }
    library().react(place, data, layout, config());
    if (figure.time && !drawn) place.on("plotly_relayout", (change) => share(place, change));
  }

  // Figures that show time share their axis: zooming one zooms all, also those drawn later or again.
  const zoom = {};
  let sharing = false;
  function share(source, change) {
    if (sharing) return;
    const range = "xaxis.range[0]" in change ? [change["xaxis.range[0]"], change["xaxis.range[1]"]] : change["xaxis.range"];
    if (!range && !change["xaxis.autorange"]) return;
    const group = figures[source.dataset.figure].time;
    zoom[group] = range ? { range, autorange: false } : { autorange: true };
    const update = range ? { "xaxis.range": range } : { "xaxis.autorange": true };
    sharing = true;
    const others = places().filter((place) => place !== source && place.dataset.drawn && figures[place.dataset.figure].time === group);
    Promise.all(others.map((place) => Plotly.relayout(place, { ...update }))).finally(() => { sharing = false; });
  }

  const places = () => [...document.querySelectorAll("main:not([hidden]) .plot")];
  const redraw = () => places().forEach((place) => place.dataset.drawn && draw(place));

  // A figure is drawn when it comes near the screen, by whatever way; the others one by one while nothing else happens.
  const seen = new IntersectionObserver((entries) => {
    for (const entry of entries) if (entry.isIntersecting && !entry.target.dataset.drawn) draw(entry.target);
  }, { rootMargin: "800px" });
  document.querySelectorAll(".plot").forEach((place) => seen.observe(place));
  const idle = (job) => (window.requestIdleCallback ? requestIdleCallback(job) : setTimeout(job, 100));
  let resting = true;
  function drawRest() {
    const next = places().find((place) => !place.dataset.drawn && place.checkVisibility());
    resting = !next;
    if (!next) return;
    if (window.Plotly) draw(next); else library();
    idle(drawRest);
  }
  function drawRestWhenIdle() {
    if (!resting) return;
    resting = false;
    idle(drawRest);
  }
  window.addEventListener("load", drawRestWhenIdle);

  function speak(lang) {
    root.lang = lang === "zh" ? "zh-Hans" : lang;
    document.querySelectorAll("main").forEach((main) => { main.hidden = main.dataset.lang !== lang; });
    document.querySelectorAll("button[data-lang]").forEach((button) => button.setAttribute("aria-pressed", String(button.dataset.lang === lang)));
    redraw();
    if (document.readyState === "complete") drawRestWhenIdle();
  }
  document.querySelectorAll("button[data-lang]").forEach((button) => button.addEventListener("click", () => {
    const here = [...document.querySelectorAll("main:not([hidden]) > section")].find((section) => section.getBoundingClientRect().bottom > 60);
    speak(button.dataset.lang);
    const there = here && document.getElementById(here.id.replace(/-(en|zh)$/, "-" + button.dataset.lang));
    if (there && window.scrollY > 300) there.scrollIntoView();
  }));

  const dark = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    store.set("theme", root.dataset.theme);
    redraw();
  });
  dark.addEventListener("change", redraw);

  let width = window.innerWidth;
  window.addEventListener("resize", () => {
    if ((width < 600) !== narrow()) redraw();
    width = window.innerWidth;
  });

  // Paper is white, and has all figures.
  let before;
  window.addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    places().forEach(draw);
  });
  window.addEventListener("afterprint", () => {
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    redraw();
  });

  const theme = store.get("theme");
  if (theme === "light" || theme === "dark") root.dataset.theme = theme;
  const asked = new URLSearchParams(location.search).get("lang");
  speak(asked === "en" || asked === "zh" ? asked : root.lang.slice(0, 2));
})();
