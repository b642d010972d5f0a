// The rest of the page, and its start.

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

// ---- Start

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
