/** The site in a real browser: Debian's Chromium, without a window. NEWS_SHOTS names a folder for screenshots. */
import assert from 'node:assert/strict';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, before, describe, test } from 'node:test';
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core';
import { makeSafe } from '../../fetch/sanitize.js';
import { until, World } from '../world.js';

const axe = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

describe('in a browser', { timeout: 900_000 }, () => {
  const world = World.forSuite();
  let browser: Browser;
  let post: string;
  before(async () => {
    const named = async (title: string) => (await world.news.posts.findOne({ title }))?._id ?? '';
    post = await named('Granularity of locks in a shared data base');
    await world.news.posts.updateOne({ _id: await named('Restore before you need to') }, { $set: { pinned: true } });
    browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--no-sandbox', '--disable-dev-shm-usage'] });
  });
  after(() => browser?.close());

  /** Opens a page and collects what must not happen: errors, violations of the policy, requests to others. */
  async function open(options: Parameters<Browser['newContext']>[0] = {}): Promise<{ context: BrowserContext; page: Page; faults: string[] }> {
    const context = await browser.newContext(options);
    context.setDefaultTimeout(120_000);
    const page = await context.newPage();
    const faults: string[] = [];
    page.on('console', (message) => message.type() === 'error' && !/status of 4\d\d/.test(message.text()) && faults.push(message.text()));
    page.on('pageerror', (error) => faults.push(error.message));
    page.on('request', (request) => new URL(request.url()).origin !== world.base && faults.push(`a request to ${request.url()}`));
    return { context, page, faults };
  }

  async function signIn(page: Page, who: 'reader' | 'editor' | 'owner'): Promise<void> {
    await page.goto(`${world.base}/login`);
    await page.fill('main input[name=name]', who);
    await page.fill('main input[name=password]', world.secrets.people[who]);
    await page.click('main button');
    await page.waitForURL('**/mine');
  }

  const pages = () => ['/', `/post/${post}`, '/source/measure-twice', '/source/maarachot', '/archive', '/sources', '/tags', '/digest', '/stats', '/search?q=index', '/login', '/join', '/about', `/explain?of=/`];
  const inside = () => ['/mine', '/desk', `/desk/post/${post}`, '/desk/source/runbook', '/desk/changes', '/desk/readers'];

  for (const [scheme, width] of [['light', 1280], ['dark', 360]] as const) {
    test(`nothing serious for axe, ${scheme}, ${width} wide`, async () => {
      const { context, page, faults } = await open({ colorScheme: scheme, bypassCSP: true, viewport: { width, height: 900 } });
      await signIn(page, 'owner');
      const found: string[] = [];
      for (const path of [...pages(), ...inside()]) {
        await page.goto(world.base + path);
        await page.evaluate(axe);
        const { violations } = (await page.evaluate('axe.run()')) as { violations: { id: string; impact: string; nodes: { html: string }[] }[] };
        found.push(...violations.filter(({ impact }) => impact === 'serious' || impact === 'critical').map(({ id, nodes }) => `${path}: ${id}: ${nodes[0]?.html.slice(0, 200)}`));
      }
      assert.deepEqual(found, []);
      assert.deepEqual(faults, []);
      await context.close();
    });
  }

  test('no page breaks the policy, asks anybody else, or is wider than a telephone', async () => {
    const { context, page, faults } = await open({ viewport: { width: 360, height: 740 } });
    await signIn(page, 'editor');
    for (const path of [...pages(), ...inside()]) {
      await page.goto(world.base + path);
      const wide = (await page.evaluate('document.documentElement.scrollWidth')) as number;
      assert.ok(wide <= 360, `${path} is ${wide} wide`);
    }
    assert.deepEqual(faults, []);
    await context.close();
  });

  test('a new post appears without reloading', async () => {
    const { context, page, faults } = await open();
    await page.goto(world.base);
    // The page is told only when its stream is open.
    const opened = world.site.live;
    for (let i = 0; i < 200 && !opened.size; i++) await page.waitForTimeout(50);
    const begun = Date.now();
    await world.addPost('It appears by itself', { html: '<p>words</p>' });
    await page.getByRole('link', { name: 'It appears by itself' }).waitFor();
    console.log(`a new post was seen after ${Date.now() - begun} ms`);
    assert.equal(await page.locator('article').first().locator('h3').innerText(), 'It appears by itself');
    assert.deepEqual(faults, []);
    await context.close();
  });

  test('without scripts everything is read and done', async () => {
    const { context, page } = await open({ javaScriptEnabled: false });
    await page.goto(world.base);
    await page.click('text=Older posts');
    assert.ok((await page.locator('article').count()) > 3);
    await signIn(page, 'reader');
    await page.goto(`${world.base}/post/${post}`);
    await page.click('text=Bookmark');
    await page.goto(`${world.base}/mine`);
    assert.equal(await page.locator(`a[href="/post/${post}"]`).count(), 1);
    await page.fill('.find input', 'deadlock');
    await page.keyboard.press('Enter');
    await page.waitForURL('**/search?q=deadlock');
    await context.close();
  });

  test('all is done by the keyboard: the way past the masthead, and every link and button shows where it is', async () => {
    const { context, page } = await open();
    await page.goto(world.base);
    const focused = () => page.evaluate(`(() => {
      const { matches, outlineStyle } = { matches: document.activeElement.matches(':focus-visible'), outlineStyle: getComputedStyle(document.activeElement).outlineStyle };
      const { width, height } = document.activeElement.getBoundingClientRect();
      return { text: document.activeElement.textContent.trim() || document.activeElement.getAttribute('aria-label'), seen: matches && outlineStyle !== 'none' && width > 1 && height > 1 };
    })()`) as Promise<{ text: string; seen: boolean }>;
    await page.keyboard.press('Tab');
    assert.deepEqual(await focused(), { text: 'To the posts', seen: true });
    const walked: string[] = [];
    for (let i = 0; i < 12; i++) {
      await page.keyboard.press('Tab');
      const { text, seen } = await focused();
      assert.ok(seen, `${text} does not show that it is where the keyboard is`);
      walked.push(text);
    }
    for (const name of ['Latest', 'Figures', 'Search posts']) assert.ok(walked.includes(name), `${walked}`);
    await page.reload();
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.keyboard.press('Tab');
    assert.match((await focused()).text, /Restore before you need to/);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/post/**');
    await context.close();
  });

  test('words are suggested while one types', async () => {
    const { context, page } = await open();
    await page.goto(world.base);
    await page.locator('.find input').pressSequentially('index');
    await page.locator('#words option').first().waitFor({ state: 'attached' });
    await context.close();
  });

  test('what strangers write does not run, even past the sanitizer', async () => {
    const { context, page, faults } = await open();
    await world.addPost('Sanitized', { html: makeSafe('<p>a</p><script>window.evil=1</script><img src=x onerror="window.evil=1"><a href="javascript:window.evil=1">x</a>', 'http://x.example/').html });
    // As if the sanitizer had failed: the policy is the second wall.
    const { _id: bad } = await world.addPost('Not sanitized', { html: '<p>b</p><script>window.evil=1</script><img src="x" onerror="window.evil=1"><iframe srcdoc="<script>parent.evil=1</script>"></iframe>' });
    for (const path of ['/', `/post/${bad}`]) {
      await page.goto(world.base + path);
      assert.equal(await page.evaluate('window.evil'), undefined);
    }
    await until(() => faults.some((fault) => /Content Security Policy/i.test(fault)), 'the policy complains');
    assert.equal(await page.evaluate('window.evil'), undefined);
    await world.news.posts.updateMany({ _id: { $in: [bad] } }, { $set: { state: 'hidden' } });
    await context.close();
  });

  test('printed pages have the text and not the navigation', async () => {
    const { context, page } = await open();
    await page.goto(`${world.base}/post/${post}`);
    await page.emulateMedia({ media: 'print' });
    assert.equal(await page.locator('.masthead nav').isVisible(), false);
    assert.equal(await page.locator('h1').isVisible(), true);
    await context.close();
  });

  test('screenshots at three widths, light and dark', async (t) => {
    const folder = process.env.NEWS_SHOTS;
    if (!folder) return t.skip('NEWS_SHOTS is not set');
    mkdirSync(folder, { recursive: true });
    for (const scheme of ['light', 'dark'] as const) {
      for (const width of [360, 768, 1280]) {
        const { context, page } = await open({ colorScheme: scheme, viewport: { width, height: 900 } });
        await signIn(page, 'editor');
        for (const [name, path] of [['front', '/'], ['post', `/post/${post}`], ['stats', '/stats'], ['search', '/search?q=index'], ['archive', '/archive'], ['rtl', '/source/maarachot'], ['desk', '/desk'], ['source', '/desk/source/runbook'], ['digest', '/digest']]) {
          await page.goto(world.base + path);
          await page.screenshot({ path: `${folder}/${name}-${width}-${scheme}.png`, fullPage: name === 'stats' || name === 'post' });
        }
        if (width === 768 && scheme === 'light') {
          await page.emulateMedia({ media: 'print' });
          await page.goto(`${world.base}/post/${post}`);
          await page.screenshot({ path: `${folder}/print.png`, fullPage: true });
        }
        await context.close();
      }
    }
  });
});
