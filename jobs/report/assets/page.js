"use strict";
// What every page needs: its data, words and numbers, and the change from what stands without scripts to what is alive.

const data = JSON.parse(document.getElementById("data").textContent);
document.getElementById("data").remove();

document.documentElement.classList.add("scripted");
for (const part of document.querySelectorAll(".live")) part.hidden = false;

const numbers = new Intl.NumberFormat("en");
const formatCount = (count) => numbers.format(count);
const formatPercent = (share) => `${(100 * share).toPrecision(3)} %`;
const formatMeasure = (value) => (value === null ? "∞" : Math.abs(value) < 1000 ? value.toPrecision(4) : formatCount(Math.round(value)));
const shortened = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

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
