// The time axis: the volume of messages over time.

const canvas = byId('density');
const axis = { bins: null, from: 0, to: 0 };

function drawDensity() {
  const width = Math.max(1, Math.floor(canvas.clientWidth));
  const bins = { c: new Uint32Array(width), a: new Uint32Array(width), bad: new Uint8Array(width) };
  const end = count > 0 ? Math.max(1, index.t[count - 1]) : 1;
  for (const row of view.rows) {
    const at = Math.min(width - 1, Math.floor((index.t[row] / end) * width));
    if (index.from[row] === 'c') bins.c[at] += 1;
    else bins.a[at] += 1;
    if (index.bad[row] === '1' || findingsOf.has(row)) bins.bad[at] = 1;
  }
  axis.bins = bins;
  paintAxis();
}

function drawWindow(first, last) {
  const from = view.rows.length > 0 ? index.t[view.rows[first]] : 0;
  const to = view.rows.length > 0 ? index.t[view.rows[last]] : 0;
  if (from === axis.from && to === axis.to) return;
  axis.from = from;
  axis.to = to;
  paintAxis();
}

function paintAxis() {
  const { bins } = axis;
  if (!bins) return;
  const width = bins.c.length;
  const height = 46;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const color = (name) => {
    // The browser resolves light or dark only for the color of an element.
    canvas.style.color = `var(${name})`;
    return getComputedStyle(canvas).color;
  };
  const [client, agent, wrong] = ['--client', '--agent', '--bad'].map(color);
  const paint = canvas.getContext('2d');
  paint.scale(ratio, ratio);
  const end = count > 0 ? Math.max(1, index.t[count - 1]) : 1;
  const x = (time) => (time / end) * width;
  paint.fillStyle = color('--window');
  paint.fillRect(x(axis.from), 0, Math.max(3, x(axis.to) - x(axis.from)), 32);
  let most = 1;
  for (let at = 0; at < width; at += 1) most = Math.max(most, bins.c[at], bins.a[at]);
  const tall = (value) => (value === 0 ? 0 : Math.max(1.5, (Math.log(value + 1) / Math.log(most + 1)) * 15));
  for (let at = 0; at < width; at += 1) {
    paint.fillStyle = client;
    if (bins.c[at]) paint.fillRect(at, 16 - tall(bins.c[at]), 1, tall(bins.c[at]));
    paint.fillStyle = agent;
    if (bins.a[at]) paint.fillRect(at, 16, 1, tall(bins.a[at]));
    paint.fillStyle = wrong;
    if (bins.bad[at]) paint.fillRect(at - 0.5, 0, 2, 32);
  }
  paint.fillStyle = color('--line');
  paint.fillRect(0, 32, width, 1);
  paint.fillStyle = color('--soft');
  paint.font = '10.5px system-ui, sans-serif';
  const wanted = end / Math.max(2, width / 110);
  const steps = [1, 2, 5].map((step) => step * 10 ** Math.floor(Math.log10(wanted)));
  const step = steps.find((each) => each >= wanted) || steps[0] * 10;
  for (let time = 0; time <= end; time += step) {
    const label = time === 0 ? '0' : lasts(Math.round(time)).replace(/\.0+ /, ' ').replace(/ 0 s$/, '');
    const at = x(time);
    if (at + paint.measureText(label).width + 3 > width) break;
    paint.fillRect(at, 33, 1, 4);
    paint.fillText(label, at + 3, 43);
  }
}

canvas.addEventListener('click', (event) => {
  if (view.rows.length === 0) return;
  const time = (event.offsetX / canvas.clientWidth) * index.t[count - 1];
  let low = 0;
  let high = view.rows.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (index.t[view.rows[middle]] >= time) high = middle;
    else low = middle + 1;
  }
  scrollToPlace(low, true);
});
new ResizeObserver(() => {
  drawDensity();
  drawSoon();
}).observe(byId('timeline'));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', paintAxis);
