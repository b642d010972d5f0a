'use strict';
// Puts fragments of HTML in their places, and sends what the user does. Everything else happens on the server.
(() => {
  const element = (id) => document.getElementById(id);

  const post = async (path, body) => {
    const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) };
    const response = await fetch(path, options);
    const text = await response.text();
    if (!response.ok) throw new Error(text || response.statusText);
    return text;
  };

  // Where an element is inside another: the same after an update, which only adds elements of a kind behind others.
  const position = (inner, outer) => {
    if (inner === outer) return '';
    const alike = [...inner.parentElement.children].filter((other) => other.className === inner.className);
    return `${position(inner.parentElement, outer)}/${inner.className}:${alike.indexOf(inner)}`;
  };

  element('forward')?.click();
  if (element('list')) startList();
  if (element('thread')) startSession();

  function startList() {
    const refresh = async () => {
      const response = await fetch('/sessions');
      if (response.status === 401) location.reload();
      const html = await response.text();
      if (response.ok && html !== element('list').shown) {
        const focused = document.activeElement?.getAttribute('href');
        element('list').innerHTML = element('list').shown = html;
        if (focused) document.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
      }
    };
    const tick = () => { if (!document.hidden) refresh().catch(() => {}); };
    tick();
    setInterval(tick, 3000);
    document.addEventListener('visibilitychange', tick);
    element('new')?.addEventListener('submit', async (event) => {
      event.preventDefault();
      const form = new FormData(event.target);
      try {
        location.href = await post('/new', { agent: form.get('agent'), cwd: form.get('cwd') });
      } catch (error) {
        element('failure').textContent = error.message;
      }
    });
  }

  function startSession() {
    let view = null;
    const form = element('prompt');
    const input = form.elements.text;
    const note = (text) => {
      const line = document.createElement('p');
      line.textContent = text;
      element('notes').replaceChildren(line);
    };
    const act = async (body) => {
      try {
        await post(`/views/${view}`, body);
        return true;
      } catch (error) {
        note(error.message);
        return false;
      }
    };

    const place = (fragment) => {
      let target = element(fragment.id);
      if (!fragment.html && fragment.id.startsWith('question-')) {
        target?.remove();
        return;
      }
      if (!target) {
        target = document.createElement('div');
        target.id = fragment.id;
        element(fragment.id.startsWith('question-') ? 'questions' : 'thread').append(target);
      }
      const before = [...target.querySelectorAll('details')];
      const open = new Map(before.map((details) => [position(details, target), details.open]));
      target.innerHTML = fragment.html;
      for (const details of target.querySelectorAll('details')) {
        details.open = open.get(position(details, target)) ?? details.open;
      }
      if (fragment.id === 'title') document.title = target.textContent;
      if (fragment.id.startsWith('question-')) call();
    };
    // A question that nobody sees is announced.
    const call = () => {
      if (!document.hidden || !('Notification' in window) || Notification.permission !== 'granted') return;
      new Notification('The agent asks for permission', { body: document.title, tag: location.href });
    };

    const events = new EventSource(`/events${location.search}`);
    events.addEventListener('view', (event) => {
      // After a lost connection, everything comes again.
      for (const id of ['thread', 'questions', 'notes']) element(id).replaceChildren();
      view = event.data;
    });
    events.addEventListener('fragments', (event) => {
      const page = document.scrollingElement;
      const isAtEnd = page.scrollHeight - page.scrollTop - page.clientHeight < 80;
      JSON.parse(event.data).forEach(place);
      const waiting = element('questions').childElementCount;
      document.title = document.title.replace(/^\(\d+\) /, '');
      if (waiting) document.title = `(${waiting}) ${document.title}`;
      if (isAtEnd) page.scrollTop = page.scrollHeight;
    });
    events.addEventListener('failed', (event) => {
      events.close();
      view = null;
      note(event.data);
      element('state').textContent = 'disconnected';
    });

    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      if ('Notification' in window && Notification.permission === 'default') Notification.requestPermission();
      const text = input.value;
      if (!text.trim()) return;
      // At once: what the user types meanwhile is the next prompt.
      input.value = '';
      if (!await act({ action: 'prompt', text })) input.value = [text, input.value].filter(Boolean).join('\n');
    });
    input.addEventListener('keydown', (event) => {
      if (event.key !== 'Enter' || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
    document.addEventListener('click', (event) => {
      const button = event.target.closest('button[data-action]');
      if (!button) return;
      const { action, question, choice, prompt } = button.dataset;
      if (action === 'answer') act({ action, question: Number(question), choice });
      if (action === 'take_back') act({ action, prompt: Number(prompt) });
      if (action === 'cancel') act({ action });
    });
    document.addEventListener('change', (event) => {
      const option = event.target.dataset?.option;
      if (option) act({ action: 'set', option, value: event.target.value });
    });
  }
})();
