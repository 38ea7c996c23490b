/** Writers of the formats that are out there, each with a fault that is out there too. */
import { escape } from '../site/html.js';
import type { SamplePost, SampleSource } from './library.js';
import { toHtml } from './markup.js';

export interface Written {
  type: string;
  body: Buffer;
}

interface Place {
  /** Where the source lives. */
  home: string;
  /** How often the feed was asked for: some feeds never say the same twice. */
  asked: number;
}

type Writer = (source: SampleSource, posts: SamplePost[], place: Place) => Written;

const xml = (body: string, declaration = '<?xml version="1.0" encoding="utf-8"?>\n') => Buffer.from(declaration + body);
const rfc822 = (date: Date) => date.toUTCString();
const cdata = (text: string) => `<![CDATA[${text.replaceAll(']]>', ']]]]><![CDATA[>')}]]>`;
const permalink = (post: SamplePost, home: string) => `${home}/${post.id}`;

function rss(version: string, source: SampleSource, home: string, items: string[], more = ''): string {
  return `<rss version="${version}"${more}><channel><title>${escape(source.name)}</title><link>${home}/</link><description>${escape(source.why)}</description><language>${source.lang}</language>
${items.join('\n')}
</channel></rss>`;
}

function item(post: SamplePost, home: string, parts: { date?: string; guid?: string; description?: string; more?: string }): string {
  return `<item><title>${escape(post.title)}</title><link>${permalink(post, home)}</link>${parts.guid ?? ''}${parts.date ? `<pubDate>${parts.date}</pubDate>` : ''}${post.tags.map((tag) => `<category>${escape(tag)}</category>`).join('')}<description>${parts.description ?? escape(toHtml(post.text))}</description>${parts.more ?? ''}</item>`;
}

/** Bytes of a text in an encoding of one byte for each character, as Latin-1 and windows-1252 mostly are. */
const latin1 = (text: string) => Buffer.from(text.replace(/[^\u0000-\u00ff]/g, (c) => `&#${c.codePointAt(0)};`), 'latin1');

export const writers: Record<string, Writer> = {
  /** Atom with XHTML, relative links below an xml:base, and the tracking pixel that its host puts in. */
  'atom-xhtml': (source, posts, { home }) => ({
    type: 'application/atom+xml; charset=utf-8',
    body: xml(`<feed xmlns="http://www.w3.org/2005/Atom" xml:base="${home}/"><id>${home}/</id><title>${escape(source.name)}</title><updated>${posts.at(-1)?.published.toISOString()}</updated><link rel="self" href="feed"/><link href="."/>
${posts.map((post) => `<entry><id>tag:${source.id}.example,2026:${post.id}</id><title type="text">${escape(post.title)}</title><link href="${post.id}"/><published>${post.published.toISOString()}</published><updated>${post.published.toISOString()}</updated><author><name>${escape(post.author)}</name></author>${post.tags.map((tag) => `<category term="${escape(tag)}"/>`).join('')}<content type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">${toHtml(post.text).replace(/<(img|br)([^>]*)>/g, '<$1$2/>')}<img src="/pixel.png" width="1" height="1" alt=""/></div></content></entry>`).join('\n')}</feed>`),
  }),

  /** RSS 2.0 with the text in content:encoded, and a blank line before the XML declaration. */
  'rss-content': (source, posts, { home }) => ({
    type: 'application/rss+xml',
    body: xml(
      rss('2.0', source, home, posts.map((post) => item(post, home, {
        date: rfc822(post.published),
        guid: `<guid isPermaLink="false">${post.id}</guid>`,
        description: escape(post.text.slice(0, 80)),
        more: `<dc:creator>${escape(post.author)}</dc:creator><content:encoded>${cdata(toHtml(post.text))}</content:encoded>`,
      })), ' xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:dc="http://purl.org/dc/elements/1.1/"'),
      '\n<?xml version="1.0" encoding="utf-8"?>\n',
    ),
  }),

  /** JSON Feed 1.1. */
  'json-1.1': (source, posts, { home }) => ({
    type: 'application/feed+json',
    body: Buffer.from(JSON.stringify({
      version: 'https://jsonfeed.org/version/1.1',
      title: source.name,
      home_page_url: `${home}/`,
      feed_url: `${home}/feed`,
      items: posts.map((post) => ({ id: post.id, url: permalink(post, home), title: post.title, content_html: toHtml(post.text), date_published: post.published.toISOString(), authors: [{ name: post.author }], tags: post.tags })),
    })),
  }),

  /** JSON Feed 1.0: numbers as identifiers, one author, plain text. */
  'json-1.0': (source, posts, { home }) => ({
    type: 'application/json',
    body: Buffer.from(JSON.stringify({
      version: 'https://jsonfeed.org/version/1',
      title: source.name,
      home_page_url: `${home}/`,
      items: posts.map((post, i) => ({ id: posts.length - i, url: permalink(post, home), title: post.title, content_text: post.text.replace(/`/g, ''), date_published: post.published.toISOString(), author: { name: post.author }, tags: post.tags })),
    })),
  }),

  /** RSS 2.0 in windows-1252 that declares UTF-8, and script in a title. */
  'rss-wrong-charset': (source, posts, { home }) => ({
    type: 'text/xml',
    body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${rss('2.0', source, home, posts.map((post, i) => item(i === 3 ? { ...post, title: `${post.title}<script>alert(1)</script>` } : post, home, { date: rfc822(post.published), guid: `<guid>${permalink(post, home)}</guid>`, more: `<author>${source.id}@example.org (${escape(post.author)})</author>` })))}`
      // In windows-1252 dashes and quotation marks are single bytes that UTF-8 does not have.
      .replaceAll('–', '\u0096').replaceAll('’', '\u0092').replaceAll('“', '\u0093').replaceAll('”', '\u0094'), 'latin1'),
  }),

  /** RSS 2.0 whose identifiers are new each time the feed is asked for, with campaign parameters on its links. */
  'rss-changing-ids': (source, posts, { home, asked }) => ({
    type: 'application/rss+xml; charset=utf-8',
    body: xml(rss('2.0', source, home, posts.map((post) => item(post, home, { date: rfc822(post.published), guid: `<guid isPermaLink="false">${post.id}?session=${asked}</guid>` }).replace('</link>', `?utm_source=feed&amp;utm_campaign=${asked}</link>`)))),
  }),

  /** Atom with only `updated`, text without markup, and every tenth post printed twice under another address. */
  'atom-twice': (source, posts, { home }) => {
    const entry = (post: SamplePost, id: string, closing: string) => `<entry><id>${home}/${id}</id><title>${escape(post.title)}</title><link rel="alternate" href="${home}/${id}"/><updated>${post.published.toISOString()}</updated>${post.tags.map((tag) => `<category term="${escape(tag)}"/>`).join('')}<content type="html">${escape(toHtml(post.text + closing))}</content></entry>`;
    return {
      type: 'application/atom+xml',
      body: xml(`<feed xmlns="http://www.w3.org/2005/Atom"><id>${home}/</id><title>${escape(source.name)}</title><updated>${posts.at(-1)?.published.toISOString()}</updated><author><name>${escape(source.authors[0] ?? '')}</name></author>
${posts.flatMap((post, i) => [entry(post, post.id, ''), ...(i % 10 === 5 ? [entry(post, `${post.id}-again`, '')] : [])]).join('\n')}</feed>`),
    };
  },

  /** RSS 0.91: no identifiers, no dates but where somebody put one, two of them absurd. */
  'rss-0.91': (source, posts, { home }) => ({
    type: 'application/xml',
    body: xml(rss('0.91', source, home, posts.map((post, i) => item(post, home, { date: i === 2 ? 'Thu, 01 Jan 1970 00:00:00 GMT' : i === 5 ? 'Fri, 31 Dec 2099 23:59:59 GMT' : rfc822(post.published) }))),
      '<?xml version="1.0"?>\n<!DOCTYPE rss PUBLIC "-//Netscape Communications//DTD RSS 0.91//EN" "http://my.netscape.com/publish/formats/rss-0.91.dtd">\n'),
  }),

  /** RSS 1.0, which is RDF, with Dublin Core. */
  rdf: (source, posts, { home }) => ({
    type: 'application/rdf+xml',
    body: xml(`<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns="http://purl.org/rss/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:content="http://purl.org/rss/1.0/modules/content/"><channel rdf:about="${home}/feed"><title>${escape(source.name)}</title><link>${home}/</link><description>${escape(source.why)}</description></channel>
${posts.map((post) => `<item rdf:about="${permalink(post, home)}"><title>${escape(post.title)}</title><link>${permalink(post, home)}</link><dc:creator>${escape(post.author)}</dc:creator><dc:date>${post.published.toISOString().slice(0, 16)}+00:00</dc:date>${post.tags.map((tag) => `<dc:subject>${escape(tag)}</dc:subject>`).join('')}<content:encoded>${cdata(toHtml(post.text))}</content:encoded></item>`).join('\n')}</rdf:RDF>`),
  }),

  /** RSS 2.0 in Latin-1, with German weekdays and months. */
  'rss-latin1': (source, posts, { home }) => {
    const german = (date: Date) => rfc822(date).replace(/^\w+/, 'Mo').replace('Mar', 'Mär').replace('May', 'Mai').replace('Oct', 'Okt').replace('Dec', 'Dez');
    return { type: 'application/rss+xml', body: latin1(`<?xml version="1.0" encoding="ISO-8859-1"?>\n${rss('2.0', source, home, posts.map((post) => item(post, home, { date: german(post.published), guid: `<guid>${permalink(post, home)}</guid>` })))}`) };
  },

  /** RSS 0.92 in UTF-16, byte order mark and all. */
  'rss-utf16': (source, posts, { home }) => ({
    type: 'text/xml',
    body: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from(`<?xml version="1.0" encoding="utf-16"?>\n${rss('0.92', source, home, posts.map((post) => item(post, home, { date: rfc822(post.published) })))}`, 'utf16le')]),
  }),

  /** Atom from right to left, titles as HTML. */
  'atom-html': (source, posts, { home }) => ({
    type: 'application/atom+xml',
    body: xml(`<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="${source.lang}"><id>${home}/</id><title>${escape(source.name)}</title><updated>${posts.at(-1)?.published.toISOString()}</updated>
${posts.map((post) => `<entry><id>urn:uuid:00000000-0000-4000-8000-${post.id.replace(/\D/g, '').padStart(12, '0')}</id><title type="html">${escape(escape(post.title))}</title><link href="${permalink(post, home)}"/><published>${post.published.toISOString()}</published><updated>${post.published.toISOString()}</updated><author><name>${escape(post.author)}</name></author><content type="html">${escape(toHtml(post.text))}</content></entry>`).join('\n')}</feed>`),
  }),
};
