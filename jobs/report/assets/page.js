"use strict";
// What every page needs: its data, words and numbers, and the change from what stands without scripts to what is alive.

const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("data").remove();

document.documentElement.classList.add("scripted");
for (const part of document.querySelectorAll(".live")) part.hidden = false;

const narrow = () => window.innerWidth < 700;
const numbers = new Intl.NumberFormat("en");
const formatCount = (count) => numbers.format(count);
const formatPercent = (share) => `${(100 * share).toPrecision(3)} %`;
const formatMeasure = (value) => (value === null ? "∞" : Math.abs(value) < 1000 ? value.toPrecision(4) : formatCount(Math.round(value)));
/** Texts of so many letters at most, where that leaves them distinct: those that begin alike show where they differ. */
function shortened(texts, most) {
  const short = texts.map((text) => (text.length > most ? `${text.slice(0, most - 1).trimEnd()}…` : text));
  const alike = (name) => short.flatMap((other, place) => (other === name ? [place] : []));
  for (const name of new Set(short)) {
    const places = alike(name);
    if (places.length < 2) continue;
    const first = texts[places[0]];
    let same = 0;
    while (places.every((place) => same < texts[place].length && texts[place][same] === first[same])) same++;
    const from = first.lastIndexOf(" ", same - 1) + 1 || same;
    const room = most - Math.max(2, Math.floor(most / 3)) - 1;  // of the part that differs
    const start = same - from < room / 2 ? from : Math.max(0, same - 2);
    for (const place of places) {
      const whole = texts[place].slice(start);
      const rest = whole.length > room ? `${whole.slice(0, room - 1)}…` : whole;
      short[place] = `${texts[place].slice(0, most - 1 - rest.length).trimEnd()}…${rest}`;
    }
  }
  return short.map((name, place) => (alike(name).length > 1 ? texts[place] : name));
}

/** An element with a class and text or children; text stays text. */
function element(name, className, ...children) {
  const made = document.createElement(name);
  if (className) made.className = className;
  made.append(...children);
  return made;
}

/** Runs `task` once, as soon as the element is nearly in view; at the latest when the page is idle, or after two seconds. */
function whenNear(place, task) {
  let waiting = true;
  const once = () => { if (waiting) { waiting = false; watcher.disconnect(); task(); } };
  const watcher = new IntersectionObserver((entries) => { if (entries.some((entry) => entry.isIntersecting)) once(); }, { rootMargin: "400px" });
  watcher.observe(place);
  window.addEventListener("beforeprint", once);
  if ("requestIdleCallback" in window) requestIdleCallback(once, { timeout: 2000 }); else setTimeout(once, 500);
}
