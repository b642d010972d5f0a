// The timeline: the messages in order, as arrows between two lifelines.

const view = { rows: new Uint32Array(0), tops: new Float64Array(1), places: new Int32Array(count), scale: 1 };
const list = byId('list');
const rowsElement = byId('rows');
let selected = -1;

function setView(rows) {
  const tops = new Float64Array(rows.length + 1);
  view.places.fill(-1);
  let top = 8;
  for (let place = 0; place < rows.length; place += 1) {
    top += gapBefore(rows, place);
    tops[place] = top;
    top += ROW;
    view.places[rows[place]] = place;
  }
  tops[rows.length] = top + 8;
  view.rows = rows;
  view.tops = tops;
  const height = tops[rows.length];
  view.scale = Math.max(1, height / TALLEST);
  rowsElement.style.height = `${height / view.scale}px`;
  for (const shown of shownRows.values()) shown.remove();
  shownRows.clear();
  const all = rows.length === count;
  byId('found').textContent = all ? `${number(count)} records` : `${number(rows.length)} of ${number(count)}`;
  drawDensity();
  draw();
}

function gapBefore(rows, place) {
  if (place === 0) return 0;
  const gap = index.t[rows[place]] - index.t[rows[place - 1]];
  return gap < GAP ? 0 : Math.min(18 + 8 * Math.log10(gap / GAP), 44);
}

function placeAt(top) {
  let low = 0;
  let high = view.rows.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (view.tops[middle] <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}

const shownRows = new Map();
let drawn = false;

function drawSoon() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    draw();
  });
}

// Maps the view's pixels to the list's. They are equal, unless the view is too tall to scroll.
function seen() {
  const height = list.clientHeight;
  const tall = Math.max(0, view.tops[view.rows.length] - height);
  const short = Math.max(1, rowsElement.offsetHeight - height);
  const top = view.scale === 1 ? list.scrollTop : Math.min(tall, (list.scrollTop / short) * tall);
  return { top, bottom: top + height, shift: list.scrollTop - top };
}

function draw() {
  const { top, bottom, shift } = seen();
  const first = Math.max(0, placeAt(top) - 4);
  const last = Math.min(view.rows.length - 1, placeAt(bottom) + 4);
  for (const [place, shown] of shownRows) {
    if (place < first || place > last) {
      shown.remove();
      shownRows.delete(place);
    }
  }
  for (let place = first; place <= last; place += 1) {
    let shown = shownRows.get(place);
    if (!shown) {
      shown = rowElement(view.rows[place], place);
      shownRows.set(place, shown);
      rowsElement.append(shown);
    }
    shown.style.transform = `translateY(${view.tops[place] + shift}px)`;
    const row = view.rows[place];
    shown.classList.toggle('selected', row === selected);
    shown.classList.toggle('mate', selected >= 0 && index.mate[selected] === row);
  }
  drawSpans(top, bottom, shift);
  drawWindow(first, last);
}

function rowElement(row, place) {
  const kind = index.kind[row];
  const summary = visible(index.summary[row]);
  const made = element('div', `row ${KINDS[kind].replace(' ', '-')} from-${index.from[row]} ${colorOf(row)}`);
  made.dataset.row = row;
  if (index.bad[row] === '1') made.classList.add('bad');
  const found = findingsOf.get(row);
  const gap = gapBefore(view.rows, place);
  if (gap > 0) {
    const label = element('div', 'gap', element('span', '', `+${lasts(index.t[row] - index.t[view.rows[place - 1]])}`));
    label.style.height = `${gap}px`;
    label.style.top = `${-gap}px`;
    made.append(label);
  }
  made.append(element('span', 'time', seconds(index.t[row])));
  const label = element('span', 'label');
  if (kind !== 's' && kind !== 'v') {
    label.append(element('b', '', visible(nameOf(row))));
    if (index.id[row] !== null) label.append(element('i', '', `${isAnswer(row) ? '=' : '#'}${visible(index.id[row])}`));
  }
  label.append(summary);
  const lane = element('div', 'lane', label);
  if (kind !== 's' && kind !== 'v') lane.append(element('div', 'arrow'));
  made.append(lane);
  let took = '';
  if (isAnswer(row) && index.mate[row] >= 0) took = lasts(index.t[row] - index.t[index.mate[row]]);
  if (kind === 'q' && index.mate[row] < 0) took = 'no answer';
  made.append(element('span', 'took', found ? element('span', 'mark', '!') : null, took));
  return made;
}

// Bars that show how long requests are pending, next to the lifeline of their receiver.
const spans = [];
function drawSpans(top, bottom, shift) {
  for (const span of spans.splice(0)) span.remove();
  const ends = { c: [], a: [] };
  const first = placeAt(top);
  // Requests that started long before are not searched in all of a long trace.
  for (let place = Math.max(0, first - 20_000); place < view.rows.length && view.tops[place] < bottom; place += 1) {
    const row = view.rows[place];
    if (index.kind[row] !== 'q' || index.mate[row] < 0) continue;
    const end = view.places[index.mate[row]];
    if (end < 0 || view.tops[end] + ROW < top) continue;
    const levels = ends[index.from[row]];
    let level = levels.findIndex((until) => until < place);
    if (level < 0) level = levels.length;
    if (level > 3) continue;
    levels[level] = end;
    const from = Math.max(view.tops[place] + ROW - 7, top - 50);
    const to = Math.min(view.tops[end] + ROW - 5, bottom + 50);
    const of = row === selected || index.mate[row] === selected ? ' selected' : '';
    const made = element('div', `span asked-by-${index.from[row]} level-${level} ${colorOf(row)}${of}`);
    made.style.transform = `translateY(${from + shift}px)`;
    made.style.height = `${Math.max(2, to - from)}px`;
    spans.push(made);
    rowsElement.append(made);
  }
}

function goTo(row) {
  showTab('messages');
  if (view.places[row] < 0) {
    for (const id of ['search', 'session', 'method', 'from']) byId(id).value = '';
    byId('errors').checked = false;
    filter();
  }
  select(row);
}

function scrollToPlace(place, block) {
  const height = list.clientHeight;
  const { top, bottom } = seen();
  const at = view.tops[place];
  if (!block && at >= top + ROW && at + ROW <= bottom - ROW) return;
  const want = Math.max(0, at - height / 3);
  const tall = Math.max(1, view.tops[view.rows.length] - height);
  list.scrollTop = view.scale === 1 ? want : (want / tall) * (rowsElement.offsetHeight - height);
}

function select(row) {
  selected = row;
  if (view.places[row] >= 0) scrollToPlace(view.places[row], false);
  inspect(row);
  draw();
}

list.addEventListener('scroll', drawSoon, { passive: true });
rowsElement.addEventListener('click', (event) => {
  const row = event.target.closest('.row');
  if (row) select(Number(row.dataset.row));
});
list.addEventListener('keydown', (event) => {
  const last = view.rows.length - 1;
  const place = selected >= 0 ? view.places[selected] : -1;
  const page = Math.floor(list.clientHeight / ROW);
  const next = {
    ArrowDown: place + 1, ArrowUp: place - 1, PageDown: place + page, PageUp: place - page, Home: 0, End: last,
  }[event.key];
  if (next === undefined || last < 0) return;
  event.preventDefault();
  select(view.rows[Math.min(last, Math.max(0, next))]);
});
document.addEventListener('keydown', (event) => {
  if (event.key === '/' && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
    event.preventDefault();
    showTab('messages');
    byId('search').focus();
  }
});
