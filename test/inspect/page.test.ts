/**
 * The inspector's page in a real browser: each panel, a file, an active run with and without control, a lost
 * connection, a large log. Invariant: one browser and one build for all.
 */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { assign, createActor, createMachine } from 'xstate';
import { createAgent, subAgents } from '../../src/index.ts';
import { ModelError } from '../../src/models/model.ts';
import { scripted } from '../support/scriptedReplies.ts';
import { byTask, spawn } from '../support/subAgentBench.ts';
import { proves, volume } from '../support/tier.ts';
import { approvedTool } from './approvalTool.ts';
import { asks, CHROMIUM, drop, EVIL, inspectedPages } from './browserPages.ts';

describe.skipIf(!existsSync(CHROMIUM))('the inspector in a browser', () => {
  const { inspector, open, openFile, agentOf, asked, madeLog, kept } = inspectedPages();

  it('it shows the chart that will run, and opens a dropped file; output of models and tools is text (H-310)', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await page.getByText('Waiting for a run').waitFor();
    expect(await page.locator('.state.is-entered').count()).toBe(0);
    await drop(page, await madeLog());
    await page.getByText('Take a note').first().waitFor();
    expect(await page.locator('#steps img, #steps script').count()).toBe(0);
    expect(await page.locator('#steps').textContent()).toContain(EVIL);
    expect(await page.title()).toBe('made.jsonl · runchart');
    expect(await page.locator('.state.is-outcome').getAttribute('data-state')).toBe('RUN.NaturalEnd');
    await page.locator('#steps').getByText('allowed by ada').waitFor();
    await page.locator('#time').getByText('note waits · allowed by ada').waitFor();
  });

  it.skipIf(!proves)(
    'it moves by keys, by the timeline and by rows: chart, steps and numbers are those of the entry',
    async () => {
      const { server } = await inspector();
      const page = await open(server);
      await drop(page, await madeLog());
      await page.locator('.pill').getByText('completed').waitFor();
      await page.keyboard.press('Home');
      await page.getByText('entry 0 of').first().waitFor();
      for (let presses = 0; presses < 4; presses++) await page.keyboard.press('j');
      expect(await page.locator('.state.is-active').getAttribute('data-state')).toBe('RUN.active.AfterInference');
      await page.keyboard.press('Alt+KeyJ');
      await page.getByRole('tab', { name: 'Events' }).click();
      const row = page.locator('.event', { hasText: 'tool-suspended' });
      await row.getByRole('button').first().click();
      expect(await row.getAttribute('class')).toContain('is-at');
      await row.getByRole('button').first().click();
      await row.getByText('permission').last().waitFor();
      await page.getByRole('tab', { name: 'Steps' }).click();
      await page.getByText('asks to run').waitFor();
      expect(await page.getByRole('button', { name: 'Allow' }).count()).toBe(0);
      const line = await page.locator('#time svg').boundingBox();
      await page.mouse.click((line?.x ?? 0) + 86, (line?.y ?? 0) + 25);
      await page.getByText('entry 0 of').first().waitFor();
      await page.keyboard.press('l');
      await page.locator('.pill').getByText('completed').waitFor();
    },
  );

  it.skipIf(!proves)(
    'it selects actors, states and panels, folds a compound without moving, and draws a sequence',
    async () => {
      const { server } = await inspector();
      const page = await open(server);
      await drop(page, await madeLog());
      await page.locator('.pill').getByText('completed').waitFor();
      const before = await page.locator('[data-state="RUN.active.LoopTop"] .box').boundingBox();
      await page.keyboard.press('k');
      expect(await page.locator('[data-state="RUN.active.LoopTop"] .box').boundingBox()).toEqual(before);
      await page.locator('[data-state="RUN.active.CommitTool"]').click();
      await page.locator('.state-card').getByText('ResumeAfterTool').waitFor();
      await page.keyboard.press('Escape');
      await page.locator('[data-state="RUN.active.LlmCall"] .fold').click();
      await page.locator('[data-state="RUN.active.LlmCall.backingOff"]').waitFor();
      await page.keyboard.press('[');
      await page.locator('[data-state="CONVERSATION.waiting"]').waitFor();
      await page
        .locator('.tree-row', { has: page.locator('.tree-name', { hasText: /^note$/ }) })
        .first()
        .click();
      await page.locator('[data-state="TOOL_CALL.Succeeded"]').waitFor();
      await page.getByRole('tab', { name: 'Context' }).click();
      const changes = page.locator('.changes');
      await changes.locator('.removed', { hasText: '"running"' }).waitFor();
      await page.getByRole('button', { name: 'Compare from here' }).click();
      await page.keyboard.press('Home');
      await changes.locator('.removed', { hasText: '"none"' }).waitFor();
      await changes.locator('.added', { hasText: '"stopped"' }).waitFor();
      await page.keyboard.press('End');
      await page.getByRole('tab', { name: 'Sequence' }).click();
      await page.locator('#sequence').getByText('note asks: permission').waitFor();
      await page.keyboard.press('c');
      await page.getByText(/\d+ of \d+ states, \d+ of \d+ edges/).waitFor();
    },
  );

  it.skipIf(!proves)('it is also one file, which reads a log and lays out charts without any server', async () => {
    const page = await openFile();
    await page.getByText('Open a log, or start an agent').waitFor();
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    await page.locator('[data-state="RUN.active.LlmCall"] .fold').click();
    await page.locator('[data-state="RUN.active.LlmCall.backingOff"]').waitFor();
    await page.getByRole('button', { name: 'Make a test' }).click();
    await page.getByText(/^test (copied|saved)/).waitFor();
  });

  it.skipIf(!proves)('it lists the broken lines of a file with their reasons, and shows the others', async () => {
    const { server } = await inspector();
    const page = await open(server);
    const lines = (await madeLog()).split('\n');
    await drop(page, [...lines.slice(0, 3), '{"torn', ...lines.slice(3)].join('\n'));
    await page.getByText('1 broken line').waitFor();
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.locator('.event.is-broken', { hasText: 'line 4' }).waitFor();
    expect(await page.locator('.time-line .cross').count()).toBe(1);
  });

  it.skipIf(!proves)(
    'it shows the first line of an error under the stop, and the complete error on request',
    async () => {
      const { server, observed } = await inspector();
      const page = await open(server);
      const failure = new ModelError({ code: 'auth', message: 'No such key\nAsk for one', retryable: false });
      await (await agentOf([failure], observed.observe).open('live')).send('Hi').result;
      const stop = page.locator('.stop');
      await stop.getByText('auth: No such key', { exact: true }).waitFor();
      await stop.getByRole('button', { name: 'whole error' }).click();
      await stop.getByText('Ask for one').waitFor();
    },
  );

  it('it turns the path into a test that uses runchart/testing', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await drop(page, await madeLog());
    await page.getByRole('button', { name: 'Make a test' }).click();
    await page.getByText('test copied').waitFor();
    const text = await page.evaluate(() => navigator.clipboard.readText());
    expect(text).toContain("from 'runchart/testing'");
    expect(text).toContain('decide');
  });

  it('it follows a run, and without control offers no button that acts', async () => {
    const { server, observed } = await inspector(false);
    const page = await open(server);
    const conversation = await agentOf([asks()], observed.observe).open('live');
    await conversation.send('Take a note').result;
    await page.locator('.pill').getByText('waits for you').waitFor();
    expect(await page.locator('.state.is-outcome').getAttribute('data-state')).toBe('RUN.Suspended');
    await page.getByText('Read-only. Start with control to decide here.').waitFor();
    await page.keyboard.press('a');
    expect(conversation.pending).toHaveLength(1);
    expect(await page.title()).toBe('◆ live · runchart');
  });

  it('it decides, resumes and shows the end if control is allowed; a late second page shows the same', async () => {
    const { server, page, conversation } = await asked();
    await page.getByText('asks to run').first().waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    await page.getByLabel('Arguments as JSON').fill('{ "text": "[redacted]" }');
    await page.getByRole('button', { name: 'Run with these' }).click();
    await page.getByText('it cannot be sent as one').waitFor();
    await page.getByLabel('Arguments as JSON').fill('{ "text": "a better note" }');
    await page.locator('.editor .added').getByText('a better note').waitFor();
    await page.getByRole('button', { name: 'Run with these' }).click();
    await page.locator('.pill').getByText('completed').waitFor();
    const [result] = conversation.log().filter((entry) => entry.type === 'tool-result');
    expect(JSON.stringify(result)).toContain('noted a better note');
    const late = await open(server);
    await late.locator('.pill').getByText('completed').waitFor();
    expect(await late.locator('#steps').textContent()).toBe(await page.locator('#steps').textContent());
  });

  it('it shows edited arguments as one editable diff, with each error under its line', async () => {
    const { page, conversation } = await asked();
    await page.getByRole('button', { name: 'Edit' }).click();
    const box = page.getByLabel('Arguments as JSON');
    const rows = (): Promise<string[][]> =>
      box.evaluate((element) =>
        [...element.children].map((row) => [row.className, row.getAttribute('data-number') ?? '', row.textContent]),
      );
    const whole = [
      ['', '1', '{'],
      ['', '2', '  "text": "a note"'],
      ['', '3', '}'],
    ];
    expect(await rows()).toEqual(whole);
    const type = page.keyboard;
    await box.locator('div').nth(1).click();
    await type.press('End');
    for (let presses = 0; presses < 5; presses++) await type.press('Backspace');
    await type.type('letter", dead');
    const changedTo = (line: string): string[][] => [
      ['', '1', '{'],
      ['removed', '2', '  "text": "a note"'],
      ['added', '2', line],
      ['', '3', '}'],
    ];
    expect(await rows()).toEqual(changedTo('  "text": "a letter", dead'));
    expect(conversation.pending).toHaveLength(1);
    await page.getByRole('button', { name: 'Run with these' }).click();
    await page.locator('.editor .added + .refused').getByText('JSON').waitFor();
    await box.press('Control+z');
    expect(await page.locator('.editor .refused').count()).toBe(0);
    expect(await rows()).toEqual(changedTo('  "text": "a letter", dea'));
    for (let presses = 0; presses < 5; presses++) await type.press('Backspace');
    await type.press('Enter');
    await type.insertText('\r\n');
    expect((await rows()).map(([look]) => look)).toEqual(['', 'removed', 'added', 'added', 'added', '']);
    await type.press('Backspace');
    await type.press('Backspace');
    await type.press('Home');
    await type.press('Backspace');
    expect(await rows()).toEqual([
      ['removed', '1', '{'],
      ['removed', '2', '  "text": "a note"'],
      ['added', '1', '{  "text": "a letter"'],
      ['', '2', '}'],
    ]);
    await page.getByRole('button', { name: 'Reset' }).click();
    expect(await rows()).toEqual(whole);
    await box.fill('{ "text": "a letter" }');
    await box.press('Control+Enter');
    await page.locator('.pill').getByText('completed').waitFor();
    const [result] = conversation.log().filter((entry) => entry.type === 'tool-result');
    expect(JSON.stringify(result)).toContain('noted a letter');
  });

  it.skipIf(!proves)(
    'it decides a call of a sub-agent at the root conversation, in the light theme too, and shows its lane',
    async () => {
      const { server, observed } = await inspector(true);
      const page = await open(server, (made) => made.emulateMedia({ colorScheme: 'light' }));
      const model = byTask({
        go: [[spawn('s', 'alpha', 'beta')], 'All done.'],
        alpha: [asks(), 'Noted.'],
        beta: ['No.'],
      });
      const agent = kept(createAgent({ model, tools: [approvedTool, subAgents({})], inspect: observed.observe }));
      const conversation = await agent.open('live');
      await conversation.send('go').result;
      const card = page.getByRole('group', { name: 'note asks to run' });
      await card.getByText('a note').waitFor();
      const colour = (selector: string, name: string): Promise<string> =>
        page
          .locator(selector)
          .first()
          .evaluate((element, property) => getComputedStyle(element).getPropertyValue(property), name);
      expect(await colour('body', 'background-color')).toBe('rgb(255, 255, 255)');
      expect(await colour('.decision', 'border-color')).toBe('rgb(185, 113, 0)');
      await page.keyboard.press('Shift+T');
      expect(await colour('body', 'background-color')).toBe('rgb(18, 19, 22)');
      await page.getByRole('button', { name: 'Unfold the lanes of a,' }).click();
      expect(await page.locator('.lane-name').allTextContents()).toEqual([
        'model',
        'tools',
        'you',
        'a',
        'model',
        'tools',
        'you',
        'b',
      ]);
      await card.getByRole('button', { name: 'Allow' }).click();
      await page.locator('.pill').getByText('completed').waitFor();
      expect(await page.locator('.bar.is-agent').count()).toBe(3);
      await page.locator('.tree-row', { hasText: 'a alpha' }).click();
      await page.locator('#steps').getByText('Noted.').waitFor();
    },
  );

  it.skipIf(!proves)('it keeps the sizes of panels and the switch of single-letter keys between visits', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    const size = async (selector: string) => {
      const { width = 0, height = 0 } = (await page.locator(selector).boundingBox()) ?? {};
      return [Math.round(width), Math.round(height)];
    };
    const drag = async (name: string, x: number, y: number): Promise<void> => {
      const box = await page.getByRole('separator', { name }).boundingBox();
      const [left, top] = [(box?.x ?? 0) + (box?.width ?? 0) / 2, (box?.y ?? 0) + (box?.height ?? 0) / 2];
      await page.mouse.move(left, top);
      await page.mouse.down();
      await page.mouse.move(left + x, top + y, { steps: 3 });
      await page.mouse.up();
    };
    await drag('Width of the tree', 60, 0);
    await drag('Width of the panel at the right', -92, 0);
    await drag('Height of the time line', 0, 500);
    const separator = page.getByRole('separator', { name: 'Width of the tree' });
    await separator.press('ArrowLeft');
    expect([await size('.tree'), await size('.right-panel'), await size('#time')]).toEqual([
      [268, expect.any(Number)],
      [500, expect.any(Number)],
      [1440, 70],
    ]);
    await page.keyboard.press('?');
    await page.getByLabel('Keys that are a single letter, digit or sign').click();
    await page.keyboard.press('Escape');
    await page.reload();
    await page.waitForSelector('.state');
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    expect((await size('.tree'))[0]).toBe(268);
    await page.keyboard.press('k');
    await page.keyboard.press('?');
    expect(await page.locator('.help').count()).toBe(0);
    await page.locator('.pill').getByText('completed').waitFor();
    await page.keyboard.press('ArrowLeft');
    await page.locator('.pill').getByText('entry').waitFor();
    await separator.dblclick();
    expect((await size('.tree'))[0]).toBe(224);
  });

  it.skipIf(!proves)(
    'it lists redacted texts with links to their entries; a narrow window has tabs, and waiting calls stay on top',
    async () => {
      const { server, observed } = await inspector(true);
      const page = await open(server);
      const model = scripted([asks('token sk-secret, twice sk-secret'), 'Done.']);
      const secrets = ['sk-secret'];
      const agent = kept(createAgent({ model, tools: [approvedTool], secrets, inspect: observed.observe }));
      const conversation = await agent.open('live');
      await conversation.send('Take a note of sk-secret').result;
      await page.getByRole('button', { name: 'redacted' }).click();
      const list = page.getByLabel('Redacted values');
      await list.getByText('content[0].text').waitFor();
      await list.getByText('item.args.text').click();
      await page.locator('.event.is-at .event-detail').getByText('[redacted], twice [redacted]').waitFor();
      await page.keyboard.press('l');
      await page.setViewportSize({ width: 900, height: 800 });
      await page.getByRole('tab', { name: 'Time' }).waitFor();
      expect(await page.getByRole('tab').allInnerTexts()).toEqual(['Chart', 'Steps', 'Events', 'Time']);
      for (const [name, selector] of [
        ['Steps', '#steps h3'],
        ['Events', '.event.is-at'],
        ['Time', '.scrubber'],
        ['Chart', '.state.is-outcome'],
      ] as const) {
        await page.getByRole('tab', { name }).click();
        await page.locator(selector).first().waitFor();
        expect(await page.getByRole('group', { name: 'note asks to run' }).count()).toBe(1);
      }
      await page.getByRole('button', { name: 'Allow' }).click();
      await page.locator('.pill').getByText('completed').waitFor();
      expect(await page.locator('.decision').count()).toBe(0);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      expect(wide).toBeLessThanOrEqual(900);
    },
  );

  it.skipIf(!proves)('it sends an accepted event to an app by a confirmed click, with control only', async () => {
    const lamp = createMachine({
      id: 'lamp',
      initial: 'off',
      context: { level: 0 },
      states: {
        off: { on: { SWITCH: { target: 'on', actions: assign({ level: ({ event }) => event.level ?? 1 }) } } },
        on: { on: { SWITCH: 'off', DIM: { guard: ({ event }) => event.level > 0 } } },
      },
    });
    const { server, observed } = await inspector(true);
    const app = createActor(lamp, { inspect: observed.observe }).start();
    const page = await open(server);
    await page.locator('b.tree-name', { hasText: 'lamp-1' }).click();
    const row = page.locator('.accepted', { hasText: 'SWITCH' });
    await row.click();
    expect(app.getSnapshot().value).toBe('off');
    await page.getByLabel('Fields of SWITCH as JSON').fill('{ "level": 7 }');
    await page.getByRole('button', { name: 'Send SWITCH' }).click();
    await page.locator('.state.is-active[data-state="lamp.on"]').waitFor();
    expect(app.getSnapshot().context).toEqual({ level: 7 });
    await page.locator('.accepted', { hasText: 'DIM' }).click();
    await page.getByLabel('Fields of DIM as JSON').fill('{ "level": 0 }');
    await page.keyboard.press('Enter');
    await page.locator('.refused').getByText('expected an event that the actor takes now, got DIM').waitFor();
    await page.keyboard.press('Escape');
    expect(await page.locator('.refused').count()).toBe(0);
    await page.locator('.event', { hasText: 'SWITCH' }).getByRole('button').click();
    await page.locator('.event-detail').getByText('level').waitFor();
    await page.getByRole('tab', { name: 'Context' }).click();
    await page.locator('#context').getByText('level').waitFor();
    app.send({ type: 'SWITCH' });
    app.send({ type: 'SWITCH', level: 9 });
    app.send({ type: 'DIM', level: 1 });
    await page.locator('[data-state="lamp.on"] .flash').waitFor({ state: 'attached' });
    await page.locator('.changes .removed').getByText('7').waitFor();
    await page.locator('.changes .added').getByText('9').waitFor();
    await page.getByRole('button', { name: 'earlier moment' }).click();
    await page.locator('.changes .added').getByText('7').waitFor();
    const { server: readOnly, observed: watched } = await inspector(false);
    createActor(lamp, { inspect: watched.observe }).start();
    const other = await open(readOnly);
    await other.locator('.accepted', { hasText: 'SWITCH' }).waitFor();
    expect(await other.locator('button.accepted').count()).toBe(0);
  });

  it.skipIf(!proves)('it reports a lost connection, stays readable meanwhile, and catches up afterwards', async () => {
    const { server, observed } = await inspector(false);
    const line: { isCut: boolean; cut?: () => void } = { isCut: false };
    const page = await open(server, (made) =>
      made.routeWebSocket(/\/ws/, (socket) => {
        if (line.isCut) return void socket.close();
        socket.connectToServer();
        line.cut = () => void socket.close();
      }),
    );
    const conversation = await agentOf(['One.', 'Two.'], observed.observe).open('live');
    await conversation.send('First').result;
    await page.locator('.pill').getByText('completed').waitFor();
    line.isCut = true;
    line.cut?.();
    await page.locator('.pill').getByText('not connected').waitFor();
    await conversation.send('Second').result;
    await page.keyboard.press('k');
    await page
      .locator('.player')
      .getByText(/entry \d+/)
      .waitFor();
    expect(await page.locator('#steps h3').allInnerTexts()).toEqual(['First']);
    line.isCut = false;
    await page.locator('.status-bar').getByText(`${conversation.log().length} entries`).waitFor();
    await page.keyboard.press('l');
    await page.locator('#steps h3').nth(1).waitFor();
    expect(await page.locator('#steps h3').allInnerTexts()).toEqual(['First', 'Second']);
  });

  it.skipIf(!proves)(
    `it opens a log of ${volume.pageEntries} entries, creates rows for the visible part only, and moves in it`,
    async () => {
      const { server } = await inspector();
      const page = await open(server);
      const block = (await madeLog()).split('\n').slice(1);
      const lines = Array.from({ length: volume.pageEntries }, (_, seq) => {
        const entry = JSON.parse(block[seq % block.length] ?? '{}') as Record<string, unknown>;
        return JSON.stringify({ ...entry, seq, runId: `r${Math.floor(seq / block.length)}`, at: seq * 20 });
      });
      await drop(page, lines.join('\n'));
      await page.getByRole('tab', { name: 'Events' }).click();
      await page.locator('.event.is-at').waitFor();
      expect(await page.locator('.event').count()).toBeLessThan(120);
      for (let place = 0; place < 10; place++) {
        await page
          .locator('.events .scroll')
          .evaluate((box, at) => box.scrollTo(0, (box.scrollHeight * at) / 10), place);
      }
      await page.keyboard.press('Home');
      await page.getByText('entry 0 of').first().waitFor();
      expect(await page.locator('.overview').count()).toBe(1);
      await page.keyboard.press('End');
      await page.getByText(`10,000 of ${volume.pageEntries.toLocaleString('en-US')} lines are read`).waitFor();
      await page.getByRole('button', { name: 'load more' }).click();
      await page.locator('.status-bar').getByText('20,000 entries', { exact: true }).waitFor();
      const earlier = page.locator('.tree-row', { hasText: 'load more' });
      const treeHeight = () => page.locator('.tree [role="tree"]').evaluate((box) => box.scrollHeight);
      const height = await treeHeight();
      await earlier.click();
      expect(await treeHeight()).toBeGreaterThan(height + 30 * 26);
      expect(await page.locator('.tree-row').count()).toBeLessThan(100);
      await page.getByRole('tab', { name: 'Steps' }).click();
      const requests = await page.locator('#steps h3').count();
      await page.getByRole('button', { name: /earlier requests · load more/ }).click();
      expect(await page.locator('#steps h3').count()).toBe(2 * requests);
    },
  );

  it.skipIf(!proves)('it keeps up with a live log of 10,000 entries, and draws the latest requests only', async () => {
    const { server, observed } = await inspector();
    const page = await open(server);
    const conversation = await agentOf(Array(2000).fill('Done.'), observed.observe).open('long');
    while (conversation.log().length < 10_000) await conversation.send('Go on.').result;
    const last = (conversation.log().length - 1).toLocaleString('en-US');
    await page.locator('.place').getByText(`entry ${last} of ${last}`, { exact: false }).first().waitFor();
    expect(await page.locator('#steps h3').count()).toBe(40);
  });
});
