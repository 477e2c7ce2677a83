"use strict";
// Subscribes this browser at its push service, and tells the console by a form where it is to be told.

const form = document.getElementById("subscribe");
const say = (which) => { document.getElementById("state").textContent = document.getElementById(which).content.textContent; };
const base64url = (buffer) => btoa(String.fromCharCode(...new Uint8Array(buffer))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

// The name by which the console knows a subscription.
async function named(subscription) {
  const digest = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(subscription.endpoint));
  return Array.from(new Uint8Array(digest), (each) => each.toString(16).padStart(2, "0")).join("");
}

async function subscribed(registration) {
  const earlier = await registration.pushManager.getSubscription();
  if (earlier !== null && base64url(earlier.options.applicationServerKey) !== form.dataset.key) await earlier.unsubscribe();
  return registration.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: form.dataset.key });
}

async function subscribe(event) {
  event.preventDefault();
  try {
    const registration = await navigator.serviceWorker.register("/sw.js");
    await navigator.serviceWorker.ready;
    const subscription = await subscribed(registration);
    form.elements.endpoint.value = subscription.endpoint;
    form.elements.key.value = base64url(subscription.getKey("p256dh"));
    form.elements.secret.value = base64url(subscription.getKey("auth"));
  } catch {
    say(Notification.permission === "denied" ? "refused" : "failed");
    return;
  }
  form.submit();
}

// The row of this browser, if the console tells it.
async function ownRow(registration) {
  const subscription = registration && await registration.pushManager.getSubscription();
  if (!subscription) return null;
  const row = document.getElementById(`browser-${await named(subscription)}`);
  row?.querySelector("form").addEventListener("submit", () => { subscription.unsubscribe(); });
  return row;
}

async function begin() {
  if (!("serviceWorker" in navigator && "PushManager" in window && "Notification" in window)) return say("unavailable");
  const row = await ownRow(await navigator.serviceWorker.getRegistration("/"));
  if (row !== null) {
    row.querySelector(".this").hidden = false;
    return say("told");
  }
  if (Notification.permission === "denied") return say("refused");
  say("silent");
  form.hidden = false;
  form.addEventListener("submit", subscribe);
}

begin();
