// Reloads the main part when something happened or was still computed; without script the page is as it was loaded.
"use strict";
let due = false;
async function refresh() {
  if (due) return;
  due = true;
  await new Promise((done) => setTimeout(done, 500));
  due = false;
  if (document.activeElement && ["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  const answer = await fetch(location.href);
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  document.querySelector("main").replaceWith(page.querySelector("main"));
  completeLater();
}
function completeLater() {
  if (document.querySelector(".pending")) setTimeout(refresh, 2000);
}
completeLater();
const kinds = ["submitted", "pending", "held", "starting", "running", "stopping", "preempted", "succeeded", "failed",
  "cancelled", "rejected", "changed", "progress", "seat_taken", "seat_quarantined", "seat_free", "seat_idle",
  "NodeLost", "NodeJoined", "NodeRemoved", "PolicyChanged", "SiteChanged", "TenantChanged"];
const source = new EventSource("/v1/events");
for (const kind of kinds) source.addEventListener(kind, refresh);
