'use strict';
// The page of a trace. What peers sent becomes text nodes only, never markup: nothing here sets innerHTML.
//
// Rows are numbered as in the index. The view is the rows that pass the filters; of it only what can be seen is in the
// document. Messages are JSON lines in blocks, and are taken apart one by one when they are looked at.
(() => {
  const byId = (id) => document.getElementById(id);
  const data = (id) => JSON.parse(byId(id).textContent);

  const index = data('index');
  const findings = data('findings');
  const notes = data('notes');
  const count = index.t.length;
  const KINDS = {
    q: 'request', n: 'notification', a: 'answer', e: 'error', x: 'no message', s: 'stderr', v: 'process',
  };
  const ROW = 32;
  // From here on time between two rows is shown as space, in microseconds.
  const GAP = 100_000;
  // Browsers cannot scroll through more than some ten million pixels.
  const TALLEST = 12_000_000;

  // ---- Small things

  function element(tag, className, ...children) {
    const made = document.createElement(tag);
    if (className) made.className = className;
    for (const child of children) if (child !== null && child !== undefined) made.append(child);
    return made;
  }

  function button(label, onclick, className) {
    const made = element('button', className, label);
    made.type = 'button';
    made.addEventListener('click', onclick);
    return made;
  }

  function lasts(microseconds) {
    const digits = (value) => (value < 10 ? value.toFixed(2) : value < 100 ? value.toFixed(1) : value.toFixed(0));
    if (microseconds < 1000) return `${microseconds} µs`;
    if (microseconds < 1e6) return `${digits(microseconds / 1e3)} ms`;
    if (microseconds < 60e6) return `${digits(microseconds / 1e6)} s`;
    const seconds = Math.round(microseconds / 1e6);
    if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
    return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  }

  const seconds = (microseconds) => (microseconds / 1e6).toFixed(3);
  const number = (value) => value.toLocaleString('en');

  function size(bytes) {
    if (bytes < 1000) return `${bytes} bytes`;
    return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`;
  }

  // What commands a terminal, turns text around or cannot be seen, as JSON would write it.
  const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
  const visible = (text) =>
    text.replace(UNSEEN, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);

  const colorOf = (row) => (index.session[row] < 0 ? 'none' : `s${index.session[row] % 8}`);
  const nameOf = (row) => index.names[index.name[row]][0];
  const isAnswer = (row) => index.kind[row] === 'a' || index.kind[row] === 'e';

  const findingsOf = new Map();
  const rowOfLine = new Map();
  if (findings.length > 0) {
    for (let row = 0; row < count; row += 1) rowOfLine.set(index.line[row], row);
    for (const finding of findings) {
      const row = rowOfLine.get(finding.line);
      if (row === undefined) continue;
      if (!findingsOf.has(row)) findingsOf.set(row, []);
      findingsOf.get(row).push(finding);
    }
  }

  // ---- Messages

  const blocks = document.getElementsByClassName('block');
  const blockCache = new Map();

  function blockOf(row) {
    let low = 0;
    let high = index.blocks.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (index.blocks[middle] <= row) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  const textOfBlock = (block) => blocks[block].textContent.slice(1);

  function messageText(row) {
    const block = blockOf(row);
    let known = blockCache.get(block);
    if (!known) {
      const text = textOfBlock(block);
      const starts = [0];
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) starts.push(at + 1);
      known = { text, starts };
      if (blockCache.size >= 4) blockCache.delete(blockCache.keys().next().value);
      blockCache.set(block, known);
    }
    const line = row - index.blocks[block];
    return known.text.slice(known.starts[line], known.starts[line + 1] - 1);
  }

  // A number that JavaScript would write in another way than the peer has.
  class Written {
    constructor(text) {
      this.text = text;
    }
  }

  function parse(text) {
    try {
      return JSON.parse(text, (_key, value, context) =>
        typeof value === 'number' && context && context.source !== undefined && context.source !== String(value)
          ? new Written(context.source)
          : value);
    } catch (error) {
      // Nested too deeply to be walked through.
      return new Written(text);
    }
  }

  // ---- The view

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

  // Where the view's pixels are in the list: the same, but in a view that is too tall to be scrolled through.
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

  // How long requests wait for their answers, beside the line of life of whoever is asked.
  const spans = [];
  function drawSpans(top, bottom, shift) {
    for (const span of spans.splice(0)) span.remove();
    const ends = { c: [], a: [] };
    const first = placeAt(top);
    // Those that began long before are not looked for in all of a long trace.
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

  // ---- The time axis

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
      // Only as the color of something is it worked out which of light and dark it is.
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

  // ---- Filters and search

  let searching = 0;

  // Not longer than a frame at a time, so that typing never waits.
  const pause = () => new Promise((resume) => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => resume();
    channel.port2.postMessage(null);
  });

  async function filter() {
    searching += 1;
    const mine = searching;
    const query = byId('search').value;
    let matches = null;
    if (query) {
      matches = await search(query, () => mine === searching);
      if (!matches) return;
    }
    const session = byId('session').value;
    const method = byId('method').value;
    const from = byId('from').value;
    const errors = byId('errors').checked;
    const wanted = new Set();
    index.names.forEach(([name, of], at) => {
      if (method === `n:${name}` || method === `m:${of}`) wanted.add(at);
    });
    const rows = new Uint32Array(count);
    let length = 0;
    for (let row = 0; row < count; row += 1) {
      if (matches && matches[row] === 0) continue;
      if (session && String(index.session[row]) !== session) continue;
      if (method && !wanted.has(index.name[row])) continue;
      const kind = index.kind[row];
      if ((from === 's' || from === 'v') && kind !== from) continue;
      if ((from === 'c' || from === 'a') && (index.from[row] !== from || kind === 's' || kind === 'v')) continue;
      if (errors && index.bad[row] !== '1' && !findingsOf.has(row)) continue;
      rows[length] = row;
      length += 1;
    }
    setView(rows.slice(0, length));
    if (selected >= 0 && view.places[selected] >= 0) scrollToPlace(view.places[selected], false);
    document.documentElement.dataset.filtered = String(mine);
  }

  // A 1 for each row that has this, in any case, in its JSON or its name; null if it is not wanted any more.
  async function search(query, wanted) {
    const matches = new Uint8Array(count);
    const plain = query.toLowerCase();
    const escaped = JSON.stringify(plain).slice(1, -1).replaceAll('<', '\\u003c');
    const ascii = escaped.replace(/[^\0-\x7f]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
    const needles = [...new Set([plain, escaped, ascii])];
    const names = index.names.map((name) => name.some((part) => part.toLowerCase().includes(plain)));
    for (let row = 0; row < count; row += 1) if (names[index.name[row]]) matches[row] = 1;
    for (let block = 0; block < index.blocks.length; block += 1) {
      byId('found').textContent = `searching ${Math.floor((100 * block) / index.blocks.length)} %`;
      await pause();
      if (!wanted()) return null;
      const original = textOfBlock(block);
      // In parts of whole lines, each of which takes some milliseconds.
      for (let at = 0, row = index.blocks[block]; at < original.length;) {
        let end = original.indexOf('\n', Math.min(original.length - 1, at + 500_000)) + 1;
        if (end === 0) end = original.length;
        const text = original.slice(at, end).toLowerCase();
        for (const needle of needles) mark(text, needle, row, matches);
        for (let line = text.indexOf('\n'); line >= 0; line = text.indexOf('\n', line + 1)) row += 1;
        at = end;
        if (at < original.length) {
          await pause();
          if (!wanted()) return null;
        }
      }
    }
    return matches;
  }

  function mark(text, needle, firstRow, matches) {
    let row = firstRow;
    let line = text.indexOf('\n');
    for (let at = text.indexOf(needle); at >= 0; at = text.indexOf(needle, line)) {
      while (line >= 0 && line < at) {
        row += 1;
        line = text.indexOf('\n', line + 1);
      }
      matches[row] = 1;
      if (line < 0) return;
    }
  }

  function option(select, value, label) {
    const made = element('option', '', label);
    made.value = value;
    select.append(made);
  }

  function fillFilters() {
    const sessions = new Uint32Array(index.sessions.length);
    const names = new Uint32Array(index.names.length);
    for (let row = 0; row < count; row += 1) {
      names[index.name[row]] += 1;
      if (index.session[row] >= 0) sessions[index.session[row]] += 1;
    }
    index.sessions.forEach((id, at) => option(byId('session'), String(at), `${visible(id)} (${number(sessions[at])})`));
    const method = byId('method');
    const updates = index.names.filter(([name, of]) => of && name !== of);
    const order = index.names.map(([name, of], at) => ({ name, of, at })).sort((a, b) => (a.name < b.name ? -1 : 1));
    for (const { name, of, at } of order) {
      if (name === of || !of) option(method, `n:${name}`, `${visible(name)} (${number(names[at])})`);
    }
    for (const of of new Set(updates.map((update) => update[1]))) {
      const group = element('optgroup');
      group.label = visible(of);
      option(group, `m:${of}`, 'all of them');
      for (const { name, of: parent, at } of order) {
        if (parent === of && name !== of) option(group, `n:${name}`, `${visible(name)} (${number(names[at])})`);
      }
      method.append(group);
    }
  }

  byId('search').addEventListener('input', filter);
  for (const id of ['session', 'method', 'from', 'errors']) byId(id).addEventListener('change', filter);

  // ---- The inspector

  const inspector = byId('inspector');

  function inspect(row) {
    const parts = element('div', 'pair', messagePart(row, null));
    const mate = index.mate[row];
    if (mate >= 0) parts.append(messagePart(mate, row));
    const found = (findingsOf.get(row) || []).map(findingElement);
    inspector.replaceChildren(...found, parts);
    inspector.scrollTop = 0;
  }

  function messagePart(row, beside) {
    const text = messageText(row);
    const facts = element('p', 'soft');
    const fact = (what) => facts.append(element('span', '', what));
    const from = { c: 'client → agent', a: 'agent → client' }[index.from[row]];
    if (from && !'sv'.includes(index.kind[row])) fact(from);
    fact(`${seconds(index.t[row])} s`);
    if (index.len[row] > 0) fact(size(index.len[row]));
    if (index.redacted[row] > 0) fact(`${index.redacted[row]} redacted`);
    fact(`line ${index.line[row]}`);
    if (isAnswer(row) && index.mate[row] >= 0) fact(`after ${lasts(index.t[row] - index.t[index.mate[row]])}`);
    if (isAnswer(row) && index.mate[row] < 0) fact('to no request');
    if (index.kind[row] === 'q' && index.mate[row] < 0) fact('never answered');
    const head = element('div', 'head', element('h2', '',
      element('b', '', visible(nameOf(row))), ' ', element('span', `word ${KINDS[index.kind[row]]}`, KINDS[index.kind[row]])));
    if (index.session[row] >= 0) {
      facts.append(element('span', `session ${colorOf(row)}`, visible(index.sessions[index.session[row]])));
    }
    const value = parse(text);
    const body = element('div', 'json');
    let raw = false;
    const show = (open) => body.replaceChildren(raw ? element('pre', '', visible(text)) : tree(value, null, open));
    const rawButton = button('Raw', () => {
      raw = !raw;
      rawButton.setAttribute('aria-pressed', String(raw));
      show(2);
    });
    rawButton.setAttribute('aria-pressed', 'false');
    const copyButton = button('Copy', () => copy(text.replaceAll('\\u003c', '<'), copyButton));
    const tools = element('div', 'tools', copyButton, rawButton,
      button('Open all', () => show(Infinity)), button('Close all', () => show(1)));
    if (beside !== null) tools.prepend(button('Go to', () => goTo(row)));
    show(4);
    return element('article', beside === null ? '' : 'beside', head, facts, tools, body);
  }

  // How much is put into the document at once: members of an object, characters of a text, all of it.
  const MEMBERS = 200;
  const CHARS = 4000;
  const NODES = 5000;

  function tree(value, key, open) {
    const budget = { left: NODES };
    return node(value, key, open, budget);
  }

  function node(value, key, open, budget) {
    budget.left -= 1;
    const name = key === null ? null : element('span', 'key', visible(String(key)), ': ');
    if (value === null || typeof value !== 'object' || value instanceof Written) {
      return element('div', 'leaf', name, leaf(value));
    }
    const isArray = Array.isArray(value);
    const keys = isArray ? null : Object.keys(value);
    const length = isArray ? value.length : keys.length;
    const [left, right] = isArray ? '[]' : '{}';
    if (length === 0) return element('div', 'leaf', name, left + right);
    const made = element('details');
    made.append(element('summary', '', name, element('span', 'soft', `${left} ${length} ${right}`)));
    const child = (at, deeper) => (isArray ? node(value[at], at, deeper, budget) : node(value[keys[at]], keys[at], deeper, budget));
    let filled = false;
    const fill = (deeper) => {
      if (filled) return;
      filled = true;
      const inside = element('div', 'inside');
      const more = (start) => {
        const end = Math.min(length, start + MEMBERS);
        for (let at = start; at < end; at += 1) inside.append(child(at, deeper));
        if (end < length) {
          inside.append(button(`${number(length - end)} more`, (event) => {
            event.target.remove();
            more(end);
          }, 'more'));
        }
      };
      more(0);
      made.append(inside);
    };
    made.addEventListener('toggle', () => {
      if (!made.open) return;
      budget.left = Math.max(budget.left, MEMBERS);
      fill(0);
    });
    if (open > 0 && budget.left > 0) {
      fill(open - 1);
      made.open = true;
    }
    return made;
  }

  function leaf(value) {
    if (value instanceof Written) return element('span', 'number', visible(value.text));
    if (typeof value !== 'string') return element('span', value === null ? 'null' : typeof value, String(value));
    // Lines are easier to read as lines.
    const lines = (text) => text.split('\n').map(visible).join('\n');
    const made = element('span', value.includes('\n') ? 'string lines' : 'string', lines(value.slice(0, CHARS)));
    if (value.length > CHARS) {
      made.append(button(`${number(value.length - CHARS)} more characters`, (event) => {
        event.target.remove();
        made.append(lines(value.slice(CHARS)));
      }, 'more'));
    }
    return made;
  }

  async function copy(text, from) {
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch (error) {
      // Not every browser lets a page from disk do so.
      const area = element('textarea');
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand('copy');
      area.remove();
    }
    from.textContent = done ? 'Copied' : 'Not copied';
    setTimeout(() => {
      from.textContent = 'Copy';
    }, 1200);
  }

  // ---- Findings

  function findingElement(finding) {
    const made = element('div', `finding ${finding.level === 'MUST' ? 'must' : 'should'}`,
      element('p', '',
        element('b', '', finding.level), ' ',
        finding.who ? element('span', 'who', `the ${finding.who}`) : null, ' ',
        element('code', '', visible(finding.rule))),
      element('p', '', visible(finding.text)));
    return made;
  }

  function fillFindings() {
    const page = byId('findings-page');
    if (findings.length > 0) byId('tab-findings').append(element('span', 'badge', number(findings.length)));
    else byId('tab-findings').hidden = true;
    const shown = findings.slice(0, 1000);
    for (const finding of shown) {
      const row = rowOfLine.get(finding.line);
      const made = findingElement(finding);
      if (row !== undefined) {
        made.firstChild.append(button(`line ${finding.line}, ${seconds(index.t[row])} s`, () => goTo(row), 'at'));
      }
      page.append(made);
    }
    if (findings.length > shown.length) {
      page.append(element('p', 'left-out', `${number(findings.length - shown.length)} more stand with their messages.`));
    }
  }

  // ---- Sessions and tabs

  const templates = [...document.querySelectorAll('template.session')];

  function fillSessions() {
    byId('tab-sessions').hidden = templates.length === 0;
    const tabs = byId('session-tabs');
    tabs.hidden = templates.length < 2;
    const ids = data('told-ids');
    templates.forEach((_template, at) => {
      const id = ids[at];
      tabs.append(button(id === undefined ? '…' : visible(id), () => tell(at), colorOfSession(id)));
    });
  }

  function colorOfSession(id) {
    const at = index.sessions.indexOf(id);
    return at < 0 ? 'none' : `s${at % 8}`;
  }

  let told = -1;
  function tell(at) {
    if (told === at || !templates[at]) return;
    told = at;
    byId('told').replaceChildren(templates[at].content.cloneNode(true));
    [...byId('session-tabs').children].forEach((tab, each) => tab.setAttribute('aria-pressed', String(each === at)));
  }
  byId('told').addEventListener('click', (event) => {
    const place = event.target.closest('button.at');
    if (!place) return;
    event.preventDefault();
    goTo(Number(place.dataset.row));
  });

  const TABS = { messages: 'messages', sessions: 'sessions', findings: 'findings-page' };

  function showTab(name) {
    for (const [tab, page] of Object.entries(TABS)) {
      byId(page).hidden = tab !== name;
      byId(`tab-${tab}`).setAttribute('aria-selected', String(tab === name));
    }
    if (name === 'sessions') tell(Math.max(0, told));
    if (name === 'messages') drawSoon();
  }
  for (const tab of Object.keys(TABS)) byId(`tab-${tab}`).addEventListener('click', () => showTab(tab));

  // ---- Beginning

  let bad = 0;
  for (let row = 0; row < count; row += 1) if (index.bad[row] === '1') bad += 1;
  const facts = [`${number(count)} records`];
  if (count > 0) facts.push(lasts(index.t[count - 1]));
  if (index.sessions.length > 0) facts.push(`${number(index.sessions.length)} session${index.sessions.length === 1 ? '' : 's'}`);
  if (bad > 0) facts.push(`${number(bad)} error${bad === 1 ? '' : 's'}`);
  byId('counts').textContent = facts.join(' · ');
  for (const note of notes) document.querySelector('header').after(element('p', 'note', visible(note)));
  fillFilters();
  fillFindings();
  fillSessions();
  filter();
  document.documentElement.dataset.ready = String(Math.round(performance.now()));
})();
