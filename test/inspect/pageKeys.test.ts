/**
 * The page by keyboard and screen reader, in a real browser. Every control that Tab reaches has a name and a focus
 * ring. Arrows move through rows and states. Letters of a text composition belong to it.
 */
import { existsSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { createAgent } from '../../src/index.ts';
import { call, type Reply, scripted } from '../support/scriptedReplies.ts';
import { proves } from '../support/tier.ts';
import { approvedTool } from './approvalTool.ts';
import { asks, CHROMIUM, drop, inspectedPages } from './browserPages.ts';

/** The colour of the focus in the dark theme. */
const BLUE = 'rgb(106, 169, 255)';

interface Focused {
  name: string;
  role: string | null;
  isRinged: boolean;
  height: number;
}

/** The focused element: its name for assistive technology, and whether the focus is visible. */
async function focused(page: Page): Promise<Focused | undefined> {
  const session = await page.context().newCDPSession(page);
  const { nodes } = await session.send('Accessibility.getFullAXTree');
  await session.detach();
  const isFocused = (node: (typeof nodes)[number]): boolean =>
    node.properties?.some(({ name, value }) => name === 'focused' && value.value === true) ?? false;
  const { name } = nodes.filter((node) => node.role?.value !== 'RootWebArea').find(isFocused) ?? {};
  return page.evaluate(
    (ownName) => {
      const element = document.activeElement;
      if (!element || element === document.body) return undefined;
      const blue = getComputedStyle(document.documentElement).getPropertyValue('--run') && 'rgb(106, 169, 255)';
      const ring = ({ outlineStyle, outlineWidth, outlineColor }: CSSStyleDeclaration): boolean =>
        outlineStyle === 'solid' && outlineWidth === '2px' && outlineColor === blue;
      const around = [element, element.closest('label')].filter((one) => one !== null);
      const line = getComputedStyle(element, '::after');
      const isLine = line.backgroundColor === blue && [line.width, line.height].includes('2px');
      return {
        name: ownName,
        role: element.role,
        isRinged: isLine || around.some((one) => ring(getComputedStyle(one))),
        height: Math.max(...around.map((one) => one.getBoundingClientRect().height)),
      };
    },
    `${name?.value ?? ''}`,
  );
}

describe.skipIf(!proves || !existsSync(CHROMIUM))('the page by keyboard', () => {
  const { inspector, open, agentOf, asked, madeLog, kept } = inspectedPages();

  it('Tab reaches controls that each have a name, a focus ring and a touch-sized area', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const model = scripted([asks('token sk-secret'), 'Done.']);
    const agent = kept(
      createAgent({ model, tools: [approvedTool], secrets: ['sk-secret'], inspect: observed.observe }),
    );
    await (await agent.open('live')).send('Take a note of sk-secret').result;
    await page.getByRole('button', { name: 'redacted' }).waitFor();
    const faults: string[] = [];
    const names: string[] = [];
    // From the tab to the end of the page, and once more from its start.
    for (const panel of ['Steps', 'Events', 'Sequence', 'Context', undefined]) {
      if (panel) await page.getByRole('tab', { name: panel }).click();
      for (let stop = await next(); stop; stop = await next()) {
        names.push(stop.name);
        if (stop.name === '') faults.push(`${panel}: no name after ${names.at(-2)}`);
        if (!stop.isRinged) faults.push(`${panel}: no ring on ${stop.name}`);
        if (stop.height < 16 && stop.role !== 'separator') faults.push(`${panel}: ${stop.name} is ${stop.height} high`);
      }
    }
    async function next() {
      await page.keyboard.press('Tab');
      return focused(page);
    }
    expect(faults).toEqual([]);
    for (const name of ['Search conversations and actors', 'RUN 1, chart', 'Time line', 'Allow A', 'Copy as mermaid'])
      expect(
        names.some((one) => one.includes(name)),
        name,
      ).toBe(true);
  });

  it('arrows move through all rows of the tree, open another conversation, and fold the open one', async () => {
    const { server, observed } = await inspector();
    const page = await open(server);
    await agentOf([], observed.observe).open('idle');
    await (await agentOf([asks()], observed.observe).open('live')).send('Take a note').result;
    await page.locator('.pill').getByText('waits for you').waitFor();
    const press = async (...keys: string[]): Promise<string> => {
      for (const key of keys) await page.keyboard.press(key);
      return page.evaluate(() => `${document.activeElement?.querySelector('.tree-name')?.textContent}`);
    };
    await page.locator('.tree-row.is-selected').focus();
    expect(await press('ArrowUp')).toBe('live');
    await press('ArrowLeft');
    expect(await page.locator('.tree-row').count()).toBe(2);
    await press('ArrowRight');
    expect(await press('ArrowDown', 'ArrowDown', 'ArrowDown', 'ArrowDown')).toBe('idle');
    await press('Enter');
    await page.locator('.pill.tone-none').getByText('idle').waitFor();
    expect(await page.locator('[role="treeitem"][tabindex="0"]').count()).toBe(1);
    await page.locator('.state.is-active.tone-none[data-state="CONVERSATION.idle.ready"]').waitFor();
    expect(await page.locator('.compound.is-parent').count()).toBe(0);
  });

  it('Space folds and unfolds a row of the tree, arrows lead to its parent and its first child, and the focus stays', async () => {
    const { page } = await asked();
    await page.locator('.pill').getByText('waits for you').waitFor();
    await page.getByRole('treeitem', { name: /^note/ }).focus();
    const press = async (...keys: string[]): Promise<string> => {
      for (const key of keys) await page.keyboard.press(key);
      return page.evaluate(() => {
        const row = document.activeElement;
        return `${row?.ariaLabel?.split(',')[0]} ${row?.ariaExpanded ?? ''}`.trim();
      });
    };
    expect(await press('ArrowLeft')).toBe('TOOL_ROUND true');
    expect(await press(' ')).toBe('TOOL_ROUND false');
    expect(await page.getByRole('treeitem', { name: /^note/ }).count()).toBe(0);
    expect(await press('ArrowLeft')).toBe('RUN 1 true');
    expect(await press('ArrowLeft')).toBe('RUN 1 false');
    expect(await press('ArrowLeft')).toBe('live true');
    expect(await press(' ')).toBe('live false');
    expect(await press(' ', 'ArrowRight')).toBe('RUN 1 false');
    expect(await press(' ', 'ArrowRight', 'ArrowRight')).toBe('TOOL_ROUND true');
    expect(await press('ArrowRight')).toBe('note');
    expect(await press('ArrowRight')).toBe('note');
    // None of these keys played the log.
    expect(await page.getByRole('button', { name: 'Pause' }).count()).toBe(0);
    await page.locator('.pill').getByText('waits for you').waitFor();
  });

  it('a tree of 3,000 calls has rows for its visible part only, and keys and scrolling reach all of it', async () => {
    const { server } = await inspector();
    const page = await open(server);
    const log = (await madeLog()).split('\n').map((line) => JSON.parse(line));
    const kinds = [log.find(({ item }) => item?.type === 'tool-call'), log.find(({ type }) => type === 'tool-started')];
    const calls = Array.from({ length: 6_000 }, (_, at) => {
      const entry = kinds[at % 2];
      const callId = `call_${at >> 1}`;
      return { ...entry, callId, ...(entry.item && { item: { ...entry.item, callId } }) };
    });
    const entries = [...log.slice(0, 4), ...calls].map((entry, seq) => JSON.stringify({ ...entry, seq, at: seq }));
    await drop(page, entries.join('\n'));
    const row = (place: number) => page.locator(`.tree-row[aria-posinset="${place}"][aria-setsize="3000"]`);
    await page.getByRole('treeitem', { name: /^TOOL_ROUND/ }).waitFor();
    expect(await page.locator('.tree-row').count()).toBeLessThan(100);
    const press = async (key: string, times = 1): Promise<string> => {
      for (let presses = 0; presses < times; presses++) await page.keyboard.press(key);
      return page.evaluate(() => {
        const focused = document.activeElement;
        return `${focused?.ariaLabel?.split(',')[0]} ${focused?.ariaPosInSet} of ${focused?.ariaSetSize}`;
      });
    };
    await page.getByRole('treeitem', { name: /^TOOL_ROUND/ }).focus();
    expect(await press('ArrowDown', 60)).toBe('note 60 of 3000');
    expect(await press('ArrowUp', 2)).toBe('note 58 of 3000');
    // Its parent has left the document by now.
    expect(await page.getByRole('treeitem', { name: /^TOOL_ROUND/ }).count()).toBe(0);
    await page.keyboard.press('ArrowLeft');
    await expect.poll(() => press('Shift')).toBe('TOOL_ROUND 1 of 1');
    await page.locator('.tree [role="tree"]').evaluate((box) => box.scrollTo(0, 26 * 1_500));
    await row(1_500).waitFor();
    expect(await page.locator('.tree-row').count()).toBeLessThan(100);
    expect(await page.locator('.tree-row[tabindex="0"]').count()).toBe(1);
    // The focused row stays in the document, so the arrow moves on from it.
    expect(await press('ArrowDown')).toBe('note 1 of 3000');
    // In one column the tree opens over the panels, and scrolls there too.
    await page.setViewportSize({ width: 900, height: 800 });
    await page.keyboard.press('/');
    await page.locator('.tree.is-open [role="tree"]').evaluate((box) => box.scrollTo(0, 26 * 2_000));
    await row(2_000).waitFor();
    expect(await page.locator('.tree-row').count()).toBeLessThan(100);
  });

  it('Enter folds the compound that arrows reach from inside, opens it again, and keeps it focused', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    const reached = async (...keys: string[]): Promise<(string | null | undefined)[]> => {
      for (const key of keys) await page.keyboard.press(key);
      return page.evaluate(() => {
        const id = document.activeElement?.getAttribute('aria-activedescendant') ?? '';
        const state = document.getElementById(id);
        const ring = state?.querySelector('.focus-ring');
        const colour = ring ? getComputedStyle(ring).stroke : 'no ring';
        return [state?.ariaLabel?.split(',')[0], state?.ariaExpanded, colour];
      });
    };
    await page.locator('.canvas').focus();
    const fromTheEnd = ['ArrowDown', 'ArrowUp', 'ArrowUp', 'ArrowUp', 'ArrowUp'];
    expect(await reached(...fromTheEnd)).toEqual(['RunStart', null, BLUE]);
    expect(await reached('ArrowUp')).toEqual(['active', 'true', BLUE]);
    await page.keyboard.press('Enter');
    await page.locator('[data-state="RUN.active"][aria-expanded="false"]').waitFor();
    expect(await reached()).toEqual(['active', 'false', BLUE]);
    await page.keyboard.press('Enter');
    await page.locator('.compound[aria-expanded="true"]', { hasText: 'active' }).waitFor();
    expect(await reached()).toEqual(['active', 'true', BLUE]);
    expect(await reached('ArrowDown')).toEqual(['RunStart', null, BLUE]);
    // A state without a way back leads to the compound, as in a tree.
    expect(await reached('ArrowLeft')).toEqual(['active', 'true', BLUE]);
    expect(await reached('ArrowRight')).toEqual(['NaturalEnd', null, BLUE]);
  });

  it('in the events the focus follows the cursor, and Enter opens and closes the row that it reached', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.keyboard.press('g');
    await page.keyboard.press('e');
    /** The distance from the cursor to the focused row, and whether that row is open. */
    const focusedRow = () =>
      page.evaluate(() => {
        const place = (element: Element | null | undefined) => Number(element?.closest('li')?.dataset.seq);
        const row = document.activeElement;
        return [place(row) - place(document.querySelector('.event.is-at')), row?.ariaExpanded];
      });
    await expect.poll(focusedRow).toEqual([0, 'false']);
    for (const keys of [['k'], ['k', 'ArrowLeft'], ['Home'], ['j'], ['End']]) {
      for (const key of keys) await page.keyboard.press(key);
      await expect.poll(focusedRow).toEqual([0, 'false']);
      await page.keyboard.press('Enter');
      await expect.poll(focusedRow).toEqual([0, 'true']);
      await page.keyboard.press(' ');
      await expect.poll(focusedRow).toEqual([0, 'false']);
    }
  });

  it('it announces the state that arrows reach in the chart, its end too, and moves to the outer chart and back', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    const announcementAfter = async (...keys: string[]) => {
      for (const key of keys) await page.keyboard.press(key);
      return page.evaluate(() => {
        const id = document.activeElement?.getAttribute('aria-activedescendant') ?? '';
        return document.getElementById(id)?.ariaLabel;
      });
    };
    await page.locator('.canvas').focus();
    expect(await announcementAfter('ArrowDown')).toBe('Done, the end, reached');
    expect(await page.locator('.end .focus-ring').count()).toBe(1);
    expect(await announcementAfter('ArrowUp', 'ArrowUp')).toBe('RunEnd, entered once, 1 way on');
    expect(await page.locator('.state .focus-ring').count()).toBe(1);
    await page.keyboard.press('[');
    await page.locator('[data-state="CONVERSATION.waiting"]').waitFor();
    // A position in one chart does not exist in another.
    expect(await page.locator('.canvas[aria-activedescendant], .state.is-far').count()).toBe(0);
    expect(await announcementAfter('ArrowDown')).toMatch(/^ready, .*ways? on$/);
    await page.keyboard.press(']');
    await page.locator('[data-state="RUN.RunEnd"]').waitFor();
    await page.keyboard.press('k');
    await page.getByRole('button', { name: 'Fork here' }).click();
    await page.getByRole('treeitem', { name: /^made at \d+/ }).waitFor();
    expect(await page.locator('.tree-row .icon:not(.chevron .icon)').count()).toBe(1);
  });

  it('it shows calls and messages that wait for their turn with their mark', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const replies: Reply[] = [[call('call_1', 'note', { text: 'a' }), call('call_2', 'note', { text: 'b' })]];
    const policies = { toolExecution: 'sequential' } as const;
    const agent = kept(
      createAgent({ model: scripted(replies), policies, tools: [approvedTool], inspect: observed.observe }),
    );
    const conversation = await agent.open('live');
    await conversation.send('Take two notes').result;
    conversation.send('And then rest', { kind: 'followUp' });
    const call2 = page.locator('.call', { hasText: 'b' });
    await call2.getByRole('img', { name: 'queued' }).waitFor();
    const queue = page.getByRole('list', { name: 'Messages that wait for their turn' });
    await queue.getByRole('listitem', { name: '' }).getByText('And then rest').waitFor();
    await queue.getByRole('img', { name: 'queued' }).waitFor();
  });

  it('it ignores the keys of a text composition: none of them sends or leaves an edit', async () => {
    const { page, conversation } = await asked();
    await page.getByRole('button', { name: 'Edit' }).click();
    const box = page.getByLabel('Arguments as JSON');
    await box.locator('div').nth(1).click();
    await page.keyboard.press('End');
    await page.keyboard.press('ArrowLeft');
    const session = await page.context().newCDPSession(page);
    await session.send('Input.imeSetComposition', { text: 'に', selectionStart: 1, selectionEnd: 1 });
    const pressed = (key: string, isComposing: boolean) =>
      box.evaluate(
        (element, [name, composing]) =>
          element.dispatchEvent(
            new KeyboardEvent('keydown', {
              ...{ key: `${name}`, isComposing: composing === true, ctrlKey: name === 'Enter' },
              ...{ bubbles: true, cancelable: true },
            }),
          ),
        [key, isComposing] as const,
      );
    for (const key of ['Enter', 'Escape', 'z']) await pressed(key, true);
    await session.send('Input.insertText', { text: '日本' });
    await box.locator('.added', { hasText: '"a note日本"' }).waitFor();
    expect(conversation.pending).toHaveLength(1);
    await pressed('Enter', false);
    await page.locator('.pill').getByText('completed').waitFor();
    expect(JSON.stringify(conversation.log())).toContain('noted a note日本');
  });

  it('it ignores those in a reason, too', async () => {
    const { page, conversation } = await asked();
    await page.getByRole('button', { name: 'Reason…' }).click();
    const reason = page.getByLabel('Reason for the denial');
    await reason.fill('だめ');
    await reason.dispatchEvent('keydown', { key: 'Escape', isComposing: true });
    await reason.dispatchEvent('keydown', { key: 'Enter', isComposing: true });
    expect(await reason.inputValue()).toBe('だめ');
    expect(conversation.pending).toHaveLength(1);
    await reason.press('Enter');
    await page.locator('.pill').getByText('completed').waitFor();
    expect(JSON.stringify(conversation.log())).toContain('だめ');
  });

  it('it stays at the end of the steps, numbers the waiting cards, and scrolls to the one that a digit selects', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const notes = ['a', 'b', 'c'].map((callId) => call(callId, 'note', { text: `${callId}\n`.repeat(20) }));
    const conversation = await agentOf([...Array(12).fill('Line.\n'.repeat(4)), notes], observed.observe).open('live');
    for (let request = 1; request <= 13; request++) await conversation.send(`Request ${request}`).result;
    const cards = page.getByRole('group', { name: 'note asks to run' });
    await cards.nth(2).waitFor();
    const isIn = (place: number) =>
      cards.nth(place).evaluate((card) => {
        const [{ top, bottom }, panel] = [
          card.getBoundingClientRect(),
          card.closest('.steps')?.getBoundingClientRect(),
        ];
        return panel !== undefined && top >= panel.top - 1 && bottom <= panel.bottom + 1;
      });
    await expect.poll(() => isIn(2)).toBe(true);
    expect(await cards.locator('header kbd').allTextContents()).toEqual(['1', '2', '3']);
    const press = async (...keys: string[]): Promise<void> => {
      // A key has no effect directly after a new card.
      await page.waitForTimeout(450);
      for (const key of keys) await page.keyboard.press(key);
    };
    await press('d');
    await press('1');
    await expect.poll(() => isIn(0)).toBe(true);
    const pendingIds = () => conversation.pending.map(({ callId }) => callId);
    expect(pendingIds()).toEqual(['a', 'b', 'c']);
    await press('d', 'd');
    await expect.poll(() => cards.count()).toBe(2);
    await press('d');
    expect(pendingIds()).toEqual(['b', 'c']);
    await press('2', 'd', 'd');
    await expect.poll(() => cards.count()).toBe(1);
    expect(pendingIds()).toEqual(['b']);
  });

  it('keys have no effect directly after a card has gone, however slowly it was decided', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const replies: Reply[] = [[call('a', 'note', { text: 'a' }), call('b', 'note', { text: 'b' })]];
    const authorize = async () => {
      await new Promise((resolve) => setTimeout(resolve, 600));
      return true;
    };
    const agent = kept(
      createAgent({ model: scripted(replies), tools: [approvedTool], authorize, inspect: observed.observe }),
    );
    const conversation = await agent.open('live');
    await conversation.send('Take two notes').result;
    const cards = page.getByRole('group', { name: 'note asks to run' });
    await cards.nth(1).waitFor();
    await page.waitForTimeout(450);
    await page.keyboard.press('1');
    // Directly after the card: the impatient second press.
    await page.evaluate(() => {
      const isOne = (): boolean => document.querySelectorAll('.decision').length === 1;
      const press = (): void =>
        void document.body.dispatchEvent(new KeyboardEvent('keydown', { key: 'd', bubbles: true }));
      const observer = new MutationObserver(() => {
        if (!isOne()) return;
        observer.disconnect();
        press();
        document.body.dataset.pressed = 'again';
      });
      observer.observe(document.body, { childList: true, subtree: true });
      press();
    });
    await page.locator('body[data-pressed]').waitFor();
    await page.waitForTimeout(800);
    expect(conversation.pending.map(({ callId }) => callId)).toEqual(['b']);
  });

  it('in a narrower window the tree opens over the chart for a search, folds after a selection, and has no tab for a visible column', async () => {
    const { server } = await inspector();
    const page = await open(server);
    await drop(page, await madeLog());
    await page.locator('.pill').getByText('completed').waitFor();
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.waitForFunction(() => document.querySelector('.tree')?.getBoundingClientRect().width === 48);
    expect(await page.getByRole('treeitem', { name: 'made.jsonl, done' }).count()).toBe(1);
    await page.keyboard.press('/');
    await page.keyboard.type('note');
    const row = page.getByRole('treeitem', { name: /^note,/ });
    await row.first().click();
    await page.locator('[data-state="TOOL_CALL.Succeeded"]').waitFor();
    expect(await page.locator('.tree.is-open').count()).toBe(0);
    await page.getByRole('button', { name: 'Conversations' }).click();
    await page.getByRole('button', { name: 'Fold the conversations' }).click();
    expect(await page.locator('.tree.is-open').count()).toBe(0);
    await page.setViewportSize({ width: 1920, height: 1080 });
    await page.locator('.events-panel').waitFor();
    expect(await page.getByRole('tab').allTextContents()).toEqual(['Steps', 'Sequence', 'Context']);
  });

  it('it shows streamed text as one row of the events, and does not move a reader elsewhere', async () => {
    const { server, observed } = await inspector();
    const page = await open(server);
    let goOn = (): void => {};
    const slow: Reply = async function* () {
      yield { type: 'text-delta', text: 'Said slowly' };
      await new Promise<void>((resolve) => {
        goOn = resolve;
      });
      yield { type: 'finish', reason: 'stop' };
    };
    const conversation = await agentOf([...Array(10).fill('Line.'), slow], observed.observe).open('live');
    for (let request = 0; request < 10; request++) await conversation.send('Go on').result;
    await page.getByRole('tab', { name: 'Events' }).click();
    const run = conversation.send('Slowly');
    await page.locator('.event.is-streamed').getByText('Said slowly').waitFor();
    const scroll = page.locator('.events .scroll');
    const top = () => scroll.evaluate((box) => [box.scrollTop, box.scrollHeight - box.clientHeight - box.scrollTop]);
    await expect.poll(async () => ((await top())[1] ?? 99) < 24).toBe(true);
    await scroll.evaluate((box) => box.scrollTo(0, 100));
    goOn();
    await run.result;
    await page.locator('.pill').getByText('completed').waitFor();
    expect((await top())[0]).toBe(100);
    expect(await page.locator('.event.is-streamed').count()).toBe(0);
    await page.keyboard.press('Home');
    await page.keyboard.press('End');
    await expect.poll(async () => ((await top())[1] ?? 99) < 24).toBe(true);
  });

  it('it shows moves without animation if there are too many to follow', async () => {
    const { server, observed } = await inspector();
    const page = await open(server, (made) => made.emulateMedia({ reducedMotion: 'no-preference' }));
    const lamp = createMachine({
      initial: 'off',
      states: { off: { on: { SWITCH: 'on' } }, on: { on: { SWITCH: 'off' } } },
    });
    const app = createActor(lamp, { inspect: observed.observe }).start();
    const motion = () =>
      page.evaluate(() => getComputedStyle(document.querySelector('.lit .shaft') ?? document.body).animationName);
    app.send({ type: 'SWITCH' });
    await expect.poll(motion).toBe('run-over');
    const timer = setInterval(() => app.send({ type: 'SWITCH' }), 10);
    await expect.poll(motion).toBe('none');
    clearInterval(timer);
    await page.waitForTimeout(1100);
    app.send({ type: 'SWITCH' });
    await expect.poll(motion).toBe('run-over');
  });
});
