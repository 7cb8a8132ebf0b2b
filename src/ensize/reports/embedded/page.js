// The planner: looks up what was worked out beforehand, and draws it.
// All text from data goes in by textContent; charts are Observable Plot's.
(() => {
  "use strict";
  const planners = JSON.parse(document.getElementById("data").textContent).planners;
  const at = (id) => document.getElementById(id);
  const UNITS = {
    parameters: "parameters",
    "multiply-adds": "multiply-adds a prediction",
    seconds: "seconds to predict the test set",
  };
  const NAMES = { cnll: "CNLL", accuracy: "accuracy" };
  // `split` is null where sizes cannot be compared, `asked` the budget as it was typed.
  const state = {
    family: 0, unit: "parameters", score: "cnll", budget: 0, asked: null, split: null, n: 0,
  };

  // Words and numbers

  const plain = (x, digits = 4) => String(Number(x.toPrecision(digits)));
  function count(x) {
    const steps = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const found = steps.find(([size]) => x >= size * 0.99995);
    return found ? plain(x / found[0]) + "\u202f" + found[1] : plain(x);
  }
  const withUnit = (x) =>
    state.unit === "seconds" ? `${plain(x)} s` : `${count(x)} ${state.unit}`;
  const isAccuracy = () => state.score === "accuracy";
  function shown(x) {
    if (x === null) return "–";
    return isAccuracy() ? `${(100 * x).toFixed(2)}\u202f%` : x.toFixed(4);
  }
  // A change to two digits, and its interval to as many places; never as 1e-7.
  function changes(...xs) {
    if (isAccuracy()) return xs.map((x) => (100 * x).toFixed(2));
    const size = Math.max(Math.abs(xs[0]), 1e-6);
    const places = Math.max(0, 1 - Math.floor(Math.log10(size)));
    return xs.map((x) => x.toFixed(places));
  }
  const ordinal = (n) => {
    const end = n % 100 > 10 && n % 100 < 14 ? "th" : ["th", "st", "nd", "rd"][n % 10];
    return `${n.toLocaleString("en")}${end || "th"}`;
  };
  // As a shell takes it.
  const quoted = (word) =>
    /^[\w.+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
  const networks = (n) => `${n.toLocaleString("en")} network${n === 1 ? "" : "s"}`;
  const named = (split) =>
    split.pool === null ? `${count(split.size)} parameters` : split.pool;

  const asSentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}.`;

  function make(tag, text, attributes = {}) {
    const element = document.createElement(tag);
    if (text !== undefined) element.textContent = text;
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== null) element.setAttribute(key, value);
    }
    return element;
  }

  // What is looked up

  const family = () => planners[state.family];
  const compared = () => Object.keys(family().units).length > 0;
  const unitOf = (name) => family().units[name];
  const unit = () => unitOf(state.unit);
  const plan = () => unit().scores[state.score][state.budget];
  const chosen = () => (state.split === null
    ? { pool: family().pools[0].name, n: family().pools[0].networks }
    : plan().splits[state.split]);
  // The pool of a split; of one between two sizes, the nearest.
  function poolOf(split) {
    const pools = family().pools;
    const same = pools.find((pool) => pool.name === split.pool);
    const away = (pool) => Math.abs(Math.log(pool.size / split.size));
    return same || pools.reduce((a, b) => (away(b) < away(a) ? b : a));
  }
  function nearest(values, x) {
    const away = (k) => Math.abs(Math.log(values[k] / x));
    return values.reduce((best, _, k) => (away(k) < away(best) ? k : best), 0);
  }
  function parsed(text) {
    const match = /^\s*([0-9][0-9.,_]*(?:e[+-]?[0-9]+)?)\s*([kmgbt]?)\s*$/i.exec(text);
    if (!match) return NaN;
    const scale = { "": 1, k: 1e3, m: 1e6, g: 1e9, b: 1e9, t: 1e12 };
    return Number(match[1].replace(/[,_]/g, "")) * scale[match[2].toLowerCase()];
  }

  // Choices

  function chooseFamily(k) {
    state.family = k;
    for (const part of document.querySelectorAll(".splitting")) part.hidden = !compared();
    at("verdict").hidden = !compared();
    if (!compared()) {
      state.score = "cnll";
      state.split = null;
      state.n = chosen().n;
      show();
      return;
    }
    const units = family().units;
    if (units[state.unit].reason) state.unit = "parameters";
    for (const input of document.querySelectorAll("input[name=unit]")) {
      input.disabled = Boolean(units[input.value].reason);
      input.parentNode.title = UNITS[input.value];
    }
    const reasons = Object.values(units).map((each) => each.reason).filter(Boolean);
    if (!unitOf("parameters").scores.accuracy) {
      reasons.push("the accuracy of splits is not known of these networks");
    }
    at("reasons").hidden = !reasons.length;
    at("reasons").textContent = reasons.map(asSentence).join(" ");
    chooseUnit(state.unit);
  }
  function chooseUnit(name) {
    state.unit = name;
    document.querySelector(`input[name=unit][value="${name}"]`).checked = true;
    const { scores, budgets, start } = unit();
    for (const input of document.querySelectorAll("input[name=score]")) {
      input.disabled = !scores[input.value];
    }
    if (!scores[state.score]) state.score = Object.keys(scores)[0];
    at("budget").max = budgets.length - 1;
    chooseBudget(start);
  }
  function chooseScore(name) {
    state.score = name;
    chooseBudget(state.budget, state.asked);
  }
  function chooseBudget(k, asked = null) {
    state.budget = k;
    state.asked = asked;
    document.querySelector(`input[name=score][value="${state.score}"]`).checked = true;
    const x = unit().budgets[k];
    at("budget").value = k;
    at("budget").setAttribute("aria-valuetext", withUnit(x));
    at("budget-text").value = state.unit === "seconds" ? plain(x) : count(x).replace("\u202f", "");
    at("budget-shown").textContent = (state.unit === "seconds"
      ? UNITS.seconds : `${x.toLocaleString("en")} ${UNITS[state.unit]}`) +
      (asked === null ? "" : "; of the budgets in this page the nearest to yours");
    const { splits, best } = plan();
    state.split = splits ? best : null;
    if (splits) state.n = chosen().n;
    show();
  }
  function chooseSplit(k, focus = false) {
    state.split = k;
    state.n = chosen().n;
    show();
    if (focus) document.querySelector(`input[name=split][value="${k}"]`).focus();
  }

  // What is shown

  function show() {
    const known = !compared() || Boolean(plan().splits);
    at("planned").hidden = !known;
    if (compared()) {
      showVerdict();
      showCommand();
      if (known) showTable();
    }
    if (!known) return;
    showNext();
    draw();
  }
  function showVerdict() {
    const { headline, verdict, reason } = plan();
    const [first, second] = at("verdict").children;
    const text = reason || verdict.sentence;
    first.textContent = headline || "Not known";
    second.textContent = asSentence(text);
  }
  function showCommand() {
    const { folder, family: name } = family();
    const budget = state.asked === null ? unit().budgets[state.budget] : state.asked;
    const words = ["ensize split", quoted(folder), "--budget", String(budget)];
    if (name !== null) words.push("--family", quoted(name));
    words.push("--in", state.unit, "--score", state.score, "--json");
    at("command").textContent = words.join(" ");
  }
  function showTable() {
    const { splits, best, as_good: asGood } = plan();
    at("score-name").textContent = NAMES[state.score];
    at("total-name").textContent = state.unit;
    const rows = splits.map((split, k) => {
      const row = make("tr", undefined, { class: "pick" });
      row.classList.toggle("best", k === best);
      row.classList.toggle("chosen", k === state.split);
      const pick = make("input", undefined, {
        type: "radio", name: "split", value: k,
        "aria-label": `${networks(split.n)} of ${named(split)}`,
      });
      pick.checked = k === state.split;
      const first = make("td");
      first.append(pick);
      const mark = k === best ? "best" : asGood.includes(k) ? "as good" : "";
      const cells = [
        [split.n.toLocaleString("en"), { "data-n": split.n }],
        [split.pool === null ? "between pools" : split.pool, { class: "words" }],
        [count(split.size), { class: "less" }],
        [count(split.total), { class: "less", "data-total": split.total }],
        [shown(split.value), { "data-value": split.value }],
        [`${shown(split.low)} to ${shown(split.high)}`, {}],
        [`${Math.round(100 * split.probability)}\u202f%`, {}],
        [split.source, { class: "words less" }],
        [mark, { class: "words" }],
      ];
      row.append(first, ...cells.map(([text, more]) => make("td", text, more)));
      row.addEventListener("click", () => chooseSplit(k, true));
      pick.addEventListener("change", () => chooseSplit(k, true));
      return row;
    });
    at("splits").replaceChildren(...rows);
  }
  function showNext() {
    const split = chosen();
    const pool = poolOf(split);
    const curve = pool.curves[state.score];
    at("next").hidden = !curve;
    if (!curve) return;
    let k = curve.n.findIndex((n) => n >= state.n);
    if (k < 0) k = curve.n.length - 1;
    state.n = curve.n[k];
    const slider = at("networks");
    slider.max = curve.n.length - 1;
    slider.value = k;
    slider.setAttribute("aria-valuetext", networks(state.n));
    const measured = state.n <= pool.networks ? "measured" : "forecast";
    at("networks-shown").textContent = `${networks(state.n)} of ${pool.name}` + spent(pool);
    const [gain, low, high] = curve.gain[k];
    const near = split.pool === null
      ? ` No network of ${count(split.size)} parameters was trained; this is the nearest pool.` : "";
    const [by, least, most] = gain === null ? [] : changes(gain, low, high);
    const way = isAccuracy() ? "raise" : "lower";
    at("next-sentence").textContent =
      `${networks(state.n)} of ${pool.name} ${state.n === 1 ? "has" : "have"} ` +
      `${NAMES[state.score]} ${shown(curve.value[k])} ` +
      `(${shown(curve.low[k])} to ${shown(curve.high[k])}, ${measured}). ` +
      (gain === null
        ? `What the ${ordinal(state.n + 1)} would gain was not measured.`
        : `The ${ordinal(state.n + 1)} would ${way} it by ${by} (${least} to ${most})` +
          `${isAccuracy() ? " percentage points" : ""}.`) + near;
  }

  function spent(pool) {
    if (!compared()) return "";
    const cost = state.n * unit().costs[family().pools.indexOf(pool)];
    const share = cost / unit().budgets[state.budget];
    return `: ${withUnit(cost)}, ${plain(100 * share, 3)}\u202f% of the budget`;
  }

  // Charts

  const TIP = {
    fill: "var(--card)", stroke: "var(--line)", lineHeight: 1.35, preferredAnchor: "bottom-left",
  };
  const WHERE = ["measured", "forecast", "interpolated", "joint law"];
  const frame = (box, more) => ({
    width: Math.max(260, Math.round(box.clientWidth)),
    height: 290, marginTop: 28, marginLeft: isAccuracy() ? 58 : 52, marginRight: 14, marginBottom: 38,
    style: { background: "none", color: "var(--ink)", fontSize: "12px", overflow: "visible" },
    ...more,
  });
  // Powers of two, which is how people count networks.
  function along(ns) {
    const top = Math.max(...ns);
    const ticks = [];
    for (let n = 1; n <= top; n *= 2) ticks.push(n);
    const every = Math.ceil(ticks.length / 8);
    return {
      type: "log", base: 2, label: "networks n", nice: false,
      domain: [Math.min(...ns) * 0.92, Math.max(top, 2) * 1.08],
      ticks: ticks.filter((_, k) => k % every === 0),
      tickFormat: (n) => count(n),
    };
  }
  const scored = () => ({
    label: isAccuracy() ? "accuracy (higher is better)" : "CNLL in nats (lower is better)",
    nice: true, grid: true, ticks: 6,
    tickFormat: isAccuracy() ? (x) => `${plain(100 * x)}%` : undefined,
  });
  function put(box, chart, label, pick) {
    const svg = chart.tagName.toLowerCase() === "svg" ? chart : chart.querySelector("svg");
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", label);
    svg.classList.add("hit");
    chart.addEventListener("click", () => chart.value && pick(chart.value));
    box.replaceChildren(chart);
  }
  function draw() {
    if (compared()) drawSplits(at("chart-splits"));
    drawCurve(at("chart-curve"));
  }
  function drawSplits(box) {
    const { splits, best, as_good: asGood } = plan();
    const points = splits.map((split, k) => ({
      ...split, k, good: asGood.includes(k), of: named(split),
    }));
    const top = points.filter((point) => point.k === best);
    const color = (point) => (point.good ? "var(--accent)" : "var(--soft)");
    const present = WHERE.filter((name) => points.some((point) => point.source === name));
    const chart = Plot.plot(frame(box, {
      x: along(points.map((point) => point.n)),
      y: scored(),
      symbol: {
        domain: WHERE, range: ["circle", "triangle", "diamond", "square"],
      },
      marks: [
        Plot.ruleX(points, { x: "n", y1: "low", y2: "high", stroke: color, strokeWidth: 2, strokeOpacity: 0.55 }),
        Plot.dot(points, {
          x: "n", y: "value", symbol: "source", r: 5, stroke: color, strokeWidth: 2,
          fill: (point) => (point.k === best ? "var(--accent)" : "var(--card)"),
        }),
        Plot.dot(points.filter((point) => point.k === state.split), {
          x: "n", y: "value", r: 10, stroke: "var(--focus)", strokeWidth: 2,
        }),
        Plot.text(top, {
          x: "n", y: "high", text: () => "best", dy: -12, fill: "var(--accent)", fontWeight: 600,
        }),
        Plot.tip(points, Plot.pointerX({
          x: "n", y: "value", ...TIP,
          title: (point) =>
            `${networks(point.n)} of ${point.of}\n${shown(point.value)} ` +
            `(${shown(point.low)} to ${shown(point.high)})\n${point.source}`,
        })),
      ],
    }));
    put(box, chart, "The splits of the budget; the table below has their numbers",
      (point) => chooseSplit(point.k));
    const marks = { measured: "● measured", forecast: "▲ forecast", interpolated: "◆ between two sizes", "joint law": "■ joint law" };
    at("legend-splits").textContent =
      `${present.map((name) => marks[name]).join("   ")}; bars: 90\u202f% intervals; ` +
      "colored: as good as the best, of which what it owes to having been chosen is taken off.";
  }
  function drawCurve(box) {
    const pool = poolOf(chosen());
    const curve = pool.curves[state.score];
    at("title-curve").textContent = curve
      ? `More networks of ${pool.name}` : `${NAMES[state.score]} of ${pool.name} is not known`;
    if (!curve) {
      box.replaceChildren();
      return;
    }
    const points = curve.n.map((n, k) => ({
      n, value: curve.value[k], low: curve.low[k], high: curve.high[k],
      gain: curve.gain[k][0], measured: n <= pool.networks,
    }));
    const measured = points.filter((point) => point.measured);
    const beyond = points.filter((point) => point.n >= pool.networks);
    const here = points.filter((point) => point.n === state.n);
    const limit = isAccuracy() || !pool.limit ? [] : [pool.limit[0]];
    const line = { x: "n", y: "value", stroke: "var(--accent)", strokeWidth: 2, curve: "monotone-x" };
    const chart = Plot.plot(frame(box, {
      x: along(curve.n),
      y: scored(),
      marks: [
        Plot.areaY(points, { x: "n", curve: "monotone-x", y1: "low", y2: "high", fill: "var(--accent)", fillOpacity: 0.16 }),
        Plot.ruleY(limit, { stroke: "var(--second)", strokeDasharray: "2 4", strokeWidth: 1.5 }),
        Plot.text(limit, {
          y: (x) => x, frameAnchor: "left", dx: 4, dy: -8, fill: "var(--second)", textAnchor: "start",
          text: (x) => `without end: ${shown(x)}`,
        }),
        Plot.line(measured, line),
        Plot.line(beyond.length > 1 ? beyond : [], { ...line, strokeDasharray: "5 4" }),
        Plot.dot(here, { x: "n", y: "value", r: 6, fill: "var(--focus)", stroke: "var(--card)", strokeWidth: 1.5 }),
        Plot.tip(points, Plot.pointerX({
          x: "n", y: "value", ...TIP,
          title: (point) =>
            `${networks(point.n)}: ${shown(point.value)}\n` +
            `${shown(point.low)} to ${shown(point.high)}\n` +
            (point.gain === null ? "" : `the next gains ${changes(point.gain)[0]}`),
        })),
      ],
    }));
    put(box, chart, `${NAMES[state.score]} of ${pool.name} along the number of networks`,
      (point) => chooseCount(point.n));
    at("legend-curve").textContent =
      (beyond.length > 1
        ? `Solid: measured, up to ${networks(pool.networks)}; dashed: forecast; `
        : `Measured, up to ${networks(pool.networks)}; `) + "band: 90\u202f% intervals.";
  }
  function chooseCount(n) {
    state.n = n;
    showNext();
    drawCurve(at("chart-curve"));
  }

  // Listening

  function listen() {
    const each = (name, act) => {
      for (const input of document.querySelectorAll(`input[name=${name}]`)) {
        input.addEventListener("change", () => act(input.value));
      }
    };
    each("unit", chooseUnit);
    each("score", chooseScore);
    const select = at("family");
    if (select) select.addEventListener("change", () => chooseFamily(Number(select.value)));
    at("budget").addEventListener("input", (event) => chooseBudget(Number(event.target.value)));
    at("budget-text").addEventListener("change", (event) => {
      const wanted = parsed(event.target.value);
      if (wanted > 0) {
        const k = nearest(unit().budgets, wanted);
        const here = Math.abs(unit().budgets[k] / wanted - 1) < 1e-9;
        chooseBudget(k, here ? null : wanted);
      } else {
        at("budget-shown").textContent = "Give a number, such as 2.5M or 400k.";
      }
    });
    at("networks").addEventListener("input", (event) => {
      const curve = poolOf(chosen()).curves[state.score];
      chooseCount(curve.n[Number(event.target.value)]);
    });
    let width = 0;
    new ResizeObserver(() => {
      const now = at("chart-curve").clientWidth;
      if (now && now !== width) {
        width = now;
        draw();
      }
    }).observe(at("chart-curve"));
    addEventListener("beforeprint", () => {
      for (const each of document.querySelectorAll("main details")) each.open = true;
    });
  }

  if (planners.length) {
    at("unplanned").hidden = true;
    // Charts take the width that they find.
    at("planner-live").hidden = false;
    listen();
    chooseFamily(0);
  }
})();
