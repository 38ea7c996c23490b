// New posts appear on the front page without reloading, and the search field suggests words. All else works without scripts.

const live = document.body.dataset.live;
if (live && 'EventSource' in window) {
  const title = document.title;
  let unseen = 0;

  const dayOf = ({ day, dayName }) => {
    const there = document.getElementById(`d-${day}`);
    if (there) return there;
    const section = document.createElement('section');
    section.className = 'day';
    section.id = `d-${day}`;
    section.setAttribute('aria-labelledby', `h-${day}`);
    const heading = document.createElement('h2');
    heading.id = `h-${day}`;
    const link = document.createElement('a');
    link.href = `/day/${day}`;
    link.textContent = dayName;
    heading.append(link);
    section.append(heading);
    // Newest days stand first.
    const days = [...document.querySelectorAll('.day')];
    const older = days.find((other) => other.id < section.id);
    if (older) older.before(section);
    else if (days.length) return null;
    else document.getElementById('main').append(section);
    return section;
  };

  const published = (article) => article.querySelector('time')?.dateTime ?? '';

  const show = (post) => {
    if (document.getElementById(`p-${post.id}`)) return;
    const day = dayOf(post);
    // A post of a day that the page does not reach back to.
    if (!day) return;
    const template = document.createElement('template');
    template.innerHTML = post.html;
    const article = template.content.firstElementChild;
    article.classList.add('new');
    const older = [...day.querySelectorAll('.post')].find((other) => published(other) < post.published);
    if (older) older.before(article);
    else day.append(article);
    if (document.hidden) document.title = `(${++unseen}) ${title}`;
  };

  document.addEventListener('visibilitychange', () => {
    if (!document.hidden) document.title = title;
    unseen = document.hidden ? unseen : 0;
  });

  const status = document.createElement('p');
  status.className = 'hidden';
  status.setAttribute('role', 'status');
  document.body.append(status);

  const events = new EventSource('/live');
  events.addEventListener('post', (event) => {
    const post = JSON.parse(event.data);
    show(post);
    status.textContent = `New: ${post.title}`;
  });
}

const words = document.getElementById('words');
let asked = 0;
for (const field of document.querySelectorAll('input[list=words]')) {
  field.addEventListener('input', async () => {
    const mine = ++asked;
    if (field.value.length < 2) return words.replaceChildren();
    const answer = await fetch(`/suggest?q=${encodeURIComponent(field.value)}`).catch(() => undefined);
    const found = answer?.ok ? await answer.json() : [];
    if (mine !== asked) return;
    words.replaceChildren(...found.map((value) => Object.assign(document.createElement('option'), { value })));
  });
}
