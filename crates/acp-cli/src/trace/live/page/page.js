// The filter, the stream of events, and the keyboard.

let stream = new AbortController();
let isEnded = false;

function showState(text, className) {
  byId('state').textContent = text;
  byId('state').className = className || '';
}

function filterQuery() {
  const query = new URLSearchParams();
  for (const id of ['text', 'from', 'method', 'session']) if (byId(id).value) query.set(id, byId(id).value);
  if (byId('errors').checked) query.set('errors', 'true');
  return query;
}

const handlers = {
  start(facts) {
    clearTable();
    byId('command').textContent = visible(facts.command);
    document.title = `trace: ${visible(facts.command)}`;
    const secrets = facts.hasSecrets ? 'secrets included' : 'secrets redacted';
    byId('facts').textContent = visible([facts.started, facts.by, secrets].join(' · '));
    byId('sending').hidden = !facts.canSend;
    showState('reading', '');
  },
  progress({ read, size }) {
    showState(`reading, ${Math.floor((100 * read) / Math.max(size, 1))} %`, '');
  },
  rows(found) {
    for (const session of found.sessions) addOption('session', session);
    for (const method of found.methods) addOption('methods', method);
    Object.assign(table, { total: found.total, matched: found.matched });
    appendRows(found.rows);
    isEnded = found.is_ended;
    showState(isEnded ? 'recording ended' : 'live', isEnded ? 'ended' : 'live');
    showCounts();
  },
  findings({ findings, total }) {
    for (const finding of findings) {
      const known = table.findings.get(finding.line) || [];
      table.findings.set(finding.line, [...known, finding]);
      const open = element('button', '', `line ${finding.line}: ${finding.level} ${finding.rule}: ${visible(finding.text)}`);
      open.type = 'button';
      open.addEventListener('click', () => goToLine(finding.line));
      byId('findings-list').append(element('li', '', open));
      const row = body.querySelector(`tr.row[data-line="${finding.line}"]`);
      if (row) markFindings(row);
    }
    byId('findings').hidden = false;
    const shown = byId('findings-list').childElementCount;
    byId('findings-count').textContent = `${number(total)} ${total === 1 ? 'finding' : 'findings'}`
      + (shown < total ? `, of which the first ${number(shown)} are listed` : '');
  },
  failed(why) {
    byId('problem').textContent = visible(why);
    showState('stopped', 'ended');
    isEnded = true;
  },
};

function addOption(id, value) {
  const known = byId(id).options;
  if ([...known].some((option) => option.value === value)) return;
  const option = element('option', '', visible(value));
  option.value = value;
  byId(id).append(option);
}

// Starts over, with the filter as it is now.
async function restart() {
  stream.abort();
  stream = new AbortController();
  const { signal } = stream;
  byId('problem').textContent = '';
  table.findings.clear();
  byId('findings-list').replaceChildren();
  byId('findings').hidden = true;
  try {
    await readEvents(`/events?${filterQuery()}`, signal, (name, data) => {
      if (!signal.aborted) handlers[name]?.(data);
    });
    if (!signal.aborted && !isEnded) showState('the command has ended', 'ended');
  } catch (error) {
    if (signal.aborted) return;
    // A stream that breaks off means that the server is gone, and so is the command.
    const isGone = error instanceof TypeError;
    showState(isGone ? 'the command has ended' : 'stopped', 'ended');
    if (!isGone) byId('problem').textContent = error.message;
  }
}

async function showEarlier(before) {
  try {
    const query = filterQuery();
    query.set('before', before);
    const found = await (await request(`/rows?${query}`)).json();
    prependRows(found.rows);
    showCounts();
    return found.rows.length;
  } catch (error) {
    byId('problem').textContent = error.message;
    return 0;
  }
}

// Shows the message on a line of the trace, whatever the filter hides.
async function goToLine(line) {
  const find = () => body.querySelector(`tr.row[data-line="${line}"]`);
  byId('follow').checked = false;
  if (!find()) {
    clearFilter();
    const { total } = table;
    stream.abort();
    clearTable();
    await showEarlier(line + 1);
    // Which of the others are newer is not known exactly, because some lines are not messages.
    Object.assign(table, { hasEnd: false, total, matched: total, below: Math.max(0, total - line + 1) });
    showState('paused', '');
    showCounts();
  }
  const row = find();
  if (!row) return;
  row.scrollIntoView({ block: 'center' });
  row.querySelector('.open').focus();
  if (!row.classList.contains('is-open')) toggleMessage(row);
}

function clearFilter() {
  for (const id of ['text', 'from', 'method', 'session']) byId(id).value = '';
  byId('errors').checked = false;
}

let typing = 0;
for (const id of ['text', 'method']) {
  byId(id).addEventListener('input', () => {
    clearTimeout(typing);
    typing = setTimeout(restart, 250);
  });
}
for (const id of ['from', 'session', 'errors']) byId(id).addEventListener('change', restart);
byId('filters').addEventListener('submit', (event) => event.preventDefault());
byId('clear').addEventListener('click', () => {
  clearFilter();
  restart();
});
byId('earlier').addEventListener('click', () => showEarlier(rowsOf()[0].dataset.line));
byId('newest').addEventListener('click', () => {
  byId('follow').checked = true;
  restart();
});
byId('follow').addEventListener('change', () => {
  if (!isFollowing()) return;
  if (!table.hasEnd) restart();
  scroller.scrollTop = scroller.scrollHeight;
});
// Whoever scrolls up wants to read, and whoever scrolls to the end wants to follow.
let lastTop = 0;
scroller.addEventListener('scroll', () => {
  const fromEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight;
  if (scroller.scrollTop < lastTop - 2 && fromEnd > 40) byId('follow').checked = false;
  lastTop = scroller.scrollTop;
});
body.addEventListener('click', (event) => {
  const row = event.target.closest('tr.row');
  if (row && !String(getSelection())) toggleMessage(row);
});

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.closest('input, select, textarea')) return;
  if (event.key === '/') {
    event.preventDefault();
    byId('text').focus();
  } else if (event.key === 'f') {
    byId('follow').click();
  } else if (event.key === 'j' || event.key === 'k') {
    const rows = [...rowsOf()];
    const at = rows.indexOf(document.activeElement.closest('tr.row'));
    const next = event.key === 'j' ? at + 1 : at - 1;
    // Without a selected message, start at the end.
    const row = at < 0 ? rows.at(-1) : rows[next];
    byId('follow').checked = false;
    row?.querySelector('.open').focus();
  }
});

(async () => {
  try {
    if (!token) throw new Error('This address has no token. Open the one that `acp trace live` has printed.');
    await signIn();
    await restart();
  } catch (error) {
    byId('problem').textContent = error.message;
    showState('not connected', 'ended');
  }
})();
