/* Reloads the main part when something that it shows has changed or was still computed; without script the page is as it
   was loaded. The more a page costs, the rarer; never in a hidden tab. The service learns the newest event that was
   seen, so that it can give many tabs the same page. */
"use strict";
const LEAST_MS = 500, BETWEEN_MS = 1500, TIMES = 10;
const main = () => document.querySelector("main");
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
let due = false, seen = "0", from = 0;
async function refresh() {
  if (due) return;
  due = true;
  await pause(Math.max(LEAST_MS, from - Date.now()));
  while (document.hidden) await new Promise((done) => document.addEventListener("visibilitychange", done, {once: true}));
  due = false;
  if (document.activeElement && ["INPUT", "SELECT"].includes(document.activeElement.tagName)) return;
  const begun = Date.now();
  const answer = await fetch(location.href, {headers: {"Eunomia-After": seen}});
  const text = await answer.text();
  from = Date.now() + Math.max(BETWEEN_MS, TIMES * (Date.now() - begun));
  if (!answer.ok) return;
  main().replaceWith(new DOMParser().parseFromString(text, "text/html").querySelector("main"));
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
for (const kind of kinds) source.addEventListener(kind, (event) => {
  seen = event.lastEventId;
  const {job, kinds} = main().dataset;
  if (!(job || kinds) || (kinds || "").split(" ").includes(kind) || (job && JSON.parse(event.data).id === job)) refresh();
});
