/** The search page and the words suggested while typing. */
import type { Source, Suggestion } from '../../db/types.js';
import type { Context, Page, Raw } from '../context.js';
import { html } from '../html.js';
import { byline } from '../posts.js';
import { highlight, questionOf, search, snippet, stemsOf } from '../search.js';

export async function searchPage(context: Context): Promise<Page> {
  const query = context.url.searchParams;
  const [there, sources] = await Promise.all([
    context.site.searchable(),
    context.reads.find<Source>('sources', {}, { sort: { name: 1 }, projection: { name: 1 } }),
  ]);
  const value = (name: string) => query.get(name) ?? '';
  const form = html`<form class="search" action="/search">
<label>Words <input type="search" name="q" value="${value('q')}" list="words"></label>
<label>Source <select name="source"><option value="">all</option>${sources.map(({ _id, name }) => html`<option value="${_id}"${_id === value('source') ? html` selected` : ''}>${name}</option>`)}</select></label>
<label>Tag <input name="tag" value="${value('tag')}"></label>
<label>From <input type="date" name="from" value="${value('from')}"></label>
<label>To <input type="date" name="to" value="${value('to')}"></label>
<button>Search</button>
<p class="hint">Several words: any of them. <kbd>"in quotes"</kbd>: exactly so. <kbd>-word</kbd>: without it.</p>
</form>`;
  if (!there) {
    return { kind: 'page', title: 'Search', main: html`<h1>Search</h1><p>The database that this site runs on has no text index. Search begins when it has one.</p>` };
  }
  const question = questionOf(query);
  const hits = question ? await search(context.reads, question, 'best') : [];
  const stems = stemsOf(question?.words ?? '');
  return {
    kind: 'page',
    title: question ? `${question.words} – search` : 'Search',
    unlisted: true,
    main: html`<h1>Search</h1>
${form}
${question && html`<p class="lead">${hits.length === 0 ? 'Nothing found.' : hits.length === 30 ? 'The 30 best hits.' : `${hits.length} ${hits.length === 1 ? 'hit' : 'hits'}.`}</p>`}
${hits.map((hit) => html`<article class="post hit" lang="${hit.lang}"><h2 dir="auto"><a href="/post/${hit._id}">${highlight(hit.title, stems)}</a></h2>${byline(hit, true)}<div class="body" dir="auto">${snippet(hit.full ? hit.text : hit.excerpt, stems)}</div></article>`)}
${context.user && question && html`<form method="post" action="/mine/search"><input type="hidden" name="query" value="${query.toString()}"><label>Keep this search as <input name="name" value="${question.words}" maxlength="60"></label> <button>Save</button></form>`}`,
  };
}

/** Words of titles that begin so, the most frequent first. An anchored range: the index on `_id` answers it. */
export async function suggest(context: Context): Promise<Raw> {
  const begun = (context.url.searchParams.get('q') ?? '').toLowerCase().slice(0, 40);
  const word = /[\p{L}\p{N}]+$/u.exec(begun)?.[0] ?? '';
  const found = word.length < 2 ? [] : await context.news.suggestions.find<Suggestion>({ _id: { $gte: word, $lt: `${word}\uffff` }, n: { $gt: 0 } }).sort({ n: -1 }).limit(8).toArray();
  const before = begun.slice(0, begun.length - word.length);
  return { kind: 'raw', type: 'application/json', body: JSON.stringify(found.map(({ _id }) => before + _id)), headers: { 'cache-control': 'public, max-age=60' } };
}
