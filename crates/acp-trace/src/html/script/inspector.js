// The inspector: a whole message, with its response or request next to it.

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

// Limits of what is added to the document at once: fields of an object, characters of a text, everything.
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
    // Not every browser allows this for a page from disk.
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
