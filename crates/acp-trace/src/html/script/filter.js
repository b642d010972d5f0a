// The filter: which rows are in the view.

let searching = 0;

// No longer than a frame at a time, so that typing never waits.
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

// Returns a 1 for each row that contains this, in any case, in its JSON or name; null if the search was abandoned.
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
    // Search in parts of whole lines, each of which takes some milliseconds.
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
