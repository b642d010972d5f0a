// Requests to the server. The token comes from the fragment of the address, and is sent in a header.
//
// The files of this directory are concatenated into one function. What peers sent becomes text only, never markup.

const byId = (id) => document.getElementById(id);

let token = location.hash.slice(1);

function element(tag, className, ...children) {
  const made = document.createElement(tag);
  if (className) made.className = className;
  for (const child of children) if (child !== null && child !== undefined) made.append(child);
  return made;
}

const number = (value) => value.toLocaleString('en');

// Shows control, bidirectional and invisible characters as in JSON. Lines remain lines.
const UNSEEN = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;
const visible = (text) =>
  text.replace(UNSEEN, (char) => (char === '\t' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`));

async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { authorization: `Bearer ${token}` } });
  if (!response.ok) throw new Error((await response.text()).trim() || response.statusText);
  return response;
}

// An address with a code works once. After that, the address has the token, so that the page can be reloaded.
async function signIn() {
  const code = token.startsWith('code=') ? token.slice(5) : '';
  if (!code) return;
  const response = await fetch('/sign-in', { method: 'POST', body: code });
  const text = await response.text();
  if (!response.ok) throw new Error(text);
  token = text;
  history.replaceState(null, '', `#${token}`);
}

// Calls `handle` with the name and the data of each event, until the stream ends.
async function readEvents(path, signal, handle) {
  const response = await request(path, { signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const events = (rest + value).split('\n\n');
    rest = events.pop();
    for (const event of events) {
      let name = '';
      let data = '';
      for (const line of event.split('\n')) {
        if (line.startsWith('event: ')) name = line.slice(7);
        if (line.startsWith('data: ')) data = line.slice(6);
      }
      if (name) handle(name, JSON.parse(data));
    }
  }
}
