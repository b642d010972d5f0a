// Shows the checked verdicts, and opens the check that the URL names.
const boxes = [...document.querySelectorAll("input[data-verdict]")];
const show = () => {
  const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.dataset.verdict));
  for (const check of document.querySelectorAll("details")) check.hidden = !shown.has(check.dataset.verdict);
  for (const page of document.querySelectorAll("section")) page.hidden = !page.querySelector("details:not([hidden])");
};
for (const box of boxes) box.addEventListener("change", show);
const open = () => {
  const check = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (check) { check.open = true; check.scrollIntoView(); }
};
addEventListener("hashchange", open);
open();
