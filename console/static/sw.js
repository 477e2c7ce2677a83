"use strict";
// Shows what the node tells, and opens the console where somebody follows it. It keeps nothing and answers no requests.

self.addEventListener("push", (event) => {
  const told = event.data.json();
  event.waitUntil(self.registration.showNotification(told.title, { body: told.text, tag: told.text, data: told.path, icon: "/static/icon.svg" }));
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow(new URL(event.notification.data, self.location.origin).pathname));
});
