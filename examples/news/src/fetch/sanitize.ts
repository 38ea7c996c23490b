/** HTML of strangers to HTML that is safe, by sanitize-html; relative links made whole; pictures led over this site. */
import { createHash } from 'node:crypto';
import sanitizeHtml from 'sanitize-html';

export interface Safe {
  html: string;
  /** The words, without markup. */
  text: string;
  /** Hosts that it links to. */
  links: string[];
  /** The pictures it shows: by which name, and where they come from. */
  pictures: { id: string; url: string }[];
}

/** Longer HTML is not looked at. */
export const maxHtml = 400_000;

const blocks = 'p div blockquote pre h3 h4 h5 h6 ul ol li dl dt dd hr br table caption thead tbody tfoot tr th td figure figcaption';
const inline = 'a b strong i em u s del ins sub sup small mark code kbd samp var abbr cite q time span bdi bdo ruby rt rp img';

export function pictureId(url: string): string {
  return createHash('sha256').update(url).digest('hex').slice(0, 32);
}

/** The address that `value` means on a page at `base`, if it is one that a reader may follow. */
function address(value: string | undefined, base: string, schemes: string[]): URL | undefined {
  if (!value || !URL.canParse(value.trim(), base)) return undefined;
  const url = new URL(value.trim(), base);
  return schemes.includes(url.protocol) && !url.username && !url.password ? url : undefined;
}

export function makeSafe(dirty: string, base: string): Safe {
  const links = new Set<string>();
  const pictures = new Map<string, string>();
  const html = sanitizeHtml(dirty.slice(0, maxHtml), {
    allowedTags: `${blocks} ${inline}`.split(' '),
    disallowedTagsMode: 'discard',
    nestingLimit: 60,
    allowedAttributes: {
      a: ['href', 'title', 'rel'],
      img: ['src', 'alt', 'width', 'height', 'loading'],
      td: ['colspan', 'rowspan'],
      th: ['colspan', 'rowspan', 'scope'],
      ol: ['start', 'reversed'],
      pre: ['tabindex'],
      time: ['datetime'],
      abbr: ['title'],
      '*': ['dir', 'lang'],
    },
    allowedSchemes: ['http', 'https', 'mailto'],
    allowProtocolRelative: false,
    transformTags: {
      // A post's headings stand below the page's own.
      h1: 'h3',
      h2: 'h3',
      center: 'div',
      tt: 'code',
      strike: 's',
      // What may scroll has to be reachable by keyboard.
      pre: () => ({ tagName: 'pre', attribs: { tabindex: '0' } }),
      a: (tagName, attribs) => {
        const url = address(attribs.href, base, ['http:', 'https:', 'mailto:']);
        if (url?.hostname) links.add(url.hostname.replace(/^www\./, ''));
        return { tagName: url ? tagName : 'span', attribs: url ? { href: url.href, rel: 'nofollow noreferrer', ...(attribs.title && { title: attribs.title }) } : {} };
      },
      img: (_tagName, attribs) => {
        const url = address(attribs.src, base, ['http:', 'https:']);
        const size = (value: string | undefined) => (/^\d{1,4}$/.test(value ?? '') ? Number(value) : undefined);
        const [width, height] = [size(attribs.width), size(attribs.height)];
        // A picture of one pixel counts readers; nobody sees it.
        if (!url || (width !== undefined && width <= 2) || (height !== undefined && height <= 2)) return { tagName: 'span', attribs: {} };
        const id = pictureId(url.href);
        if (pictures.size < 40) pictures.set(id, url.href);
        return {
          tagName: 'img',
          attribs: { src: `/picture/${id}`, alt: attribs.alt ?? '', loading: 'lazy', ...(width && height && { width: `${width}`, height: `${height}` }) },
        };
      },
    },
    // What is left empty by what was taken out.
    exclusiveFilter: (frame) => ['p', 'span', 'figure', 'div'].includes(frame.tag) && !frame.text.trim() && !frame.mediaChildren?.length,
  }).trim();
  return { html, text: plain(html), links: [...links], pictures: [...pictures].map(([id, url]) => ({ id, url })) };
}

/** The words of HTML; blocks are divided by blanks, entities are characters again. */
export function plain(html: string): string {
  const spaced = html.replace(/<\/?(?:p|div|br|li|h\d|td|th|tr|pre|blockquote|dt|dd|figure|figcaption)\b[^>]*>/gi, ' $&');
  return unescape(sanitizeHtml(spaced, { allowedTags: [], allowedAttributes: {}, nestingLimit: 200 })).replace(/\s+/g, ' ').trim();
}

function unescape(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (_all, name: string) => ({ amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'", nbsp: ' ' })[name] ?? '');
}

/** The first sentences, ending in `[…]` when more follows. */
export function excerptOf(text: string, words = 55): string {
  const list = text.split(' ');
  // Languages without blanks between words are cut by characters.
  if (list.length < words && text.length > words * 8) return `${[...text].slice(0, words * 3).join('')} […]`;
  if (list.length <= words && text.length <= 1900) return text;
  return `${list.slice(0, words).join(' ').slice(0, 1900)} […]`;
}

/** What is shown of a post that may not be shown in full: two thirds of it at most, so that it always ends in `[…]`. */
export function quoteOf(text: string): string {
  const excerpt = excerptOf(text);
  const letters = [...text];
  const most = Math.floor((letters.length * 2) / 3);
  if (!text || (excerpt !== text && excerpt.length <= most)) return excerpt;
  const part = letters.slice(0, most).join('');
  // Between words, where there are blanks.
  const blank = part.lastIndexOf(' ');
  return `${blank > most / 2 ? part.slice(0, blank) : part} […]`;
}
