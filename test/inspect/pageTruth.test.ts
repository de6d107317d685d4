/**
 * The content of the page in a real browser: only real events. Two conversations with equal call ids, parallel regions,
 * edited and denied calls, retries, and texts that would control the page.
 */
import { existsSync } from 'node:fs';
import type { Page } from 'playwright-core';
import { describe, expect, it } from 'vitest';
import { createActor, createMachine } from 'xstate';
import { createAgent } from '../../src/index.ts';
import { ModelError } from '../../src/models/model.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { approvedTool } from './approvalTool.ts';
import { asks, CHROMIUM, drop, inspectedPages } from './browserPages.ts';
import { drives } from './displayCharacters.ts';

const HOSTILE = '\u202egnp.exe\u2066\u200f \u001b[2J\u009b31m <b>x</b>';
const KEY = 'sk-proj-abcdefghijklmnop1234';

/** A folder for screenshots of these tests. */
const PICTURES = process.env.PICTURES;
async function picture(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  for (const colorScheme of ['dark', 'light'] as const) {
    await page.emulateMedia({ colorScheme });
    // Colours change within 120 ms.
    await page.waitForTimeout(300);
    await page.screenshot({ path: `${PICTURES}/${name}-${colorScheme}.png` });
  }
}

/** All visible and audible text of the page. */
const readOn = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const spokenTexts = [...document.querySelectorAll('*')].flatMap((element) =>
      ['title', 'aria-label', 'placeholder', 'aria-valuetext'].map((name) => element.getAttribute(name) ?? ''),
    );
    return [document.title, document.body.textContent, ...spokenTexts].join('\n');
  });

describe.skipIf(!existsSync(CHROMIUM))('the page shows real events', () => {
  const { inspector, open, agentOf, kept } = inspectedPages();

  it('two conversations with equal call ids: the card of one is not the card of the other', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const [a, b] = await Promise.all(
      ['first', 'second'].map((id) => agentOf([asks(), 'Done.'], observed.observe).open(id)),
    );
    await a?.send('Take a note').result;
    await b?.send('Take another note').result;
    const row = (name: string) => page.locator('[role="treeitem"][aria-level="1"]', { hasText: name }).first();
    await row('first').click();
    await page.getByRole('button', { name: 'Allow' }).click();
    await page.locator('.pill').getByText('completed').waitFor();
    await row('second').click();
    await page.locator('.pill').getByText('waits for you').waitFor();
    expect(await page.locator('.receipt').count()).toBe(0);
    await page.getByRole('button', { name: 'Deny' }).waitFor();
    await picture(page, 'equal-ids');
    // Keys have no effect for a moment after a card has appeared.
    const isDecided = (): boolean => b?.log().some(({ type }) => type === 'decision') ?? false;
    while (!isDecided()) await page.keyboard.press('d', { delay: 50 });
    await page.locator('.pill').getByText('completed').waitFor();
    await page.locator('.call', { hasText: 'denied by inspector' }).waitFor();
    await picture(page, 'denied');
    expect(b?.log().filter(({ type }) => type === 'decision')).toMatchObject([{ decision: { action: 'deny' } }]);
  });

  it('parallel regions: each is lit, and a click sends the event of any of them', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const machine = createMachine({
      id: 'player',
      type: 'parallel',
      states: {
        sound: { initial: 'loud', states: { loud: { on: { MUTE: 'quiet' } }, quiet: { on: { MUTE: 'loud' } } } },
        picture: { initial: 'small', states: { small: { on: { GROW: 'large' } }, large: { on: { SHRINK: 'small' } } } },
      },
    });
    const app = createActor(machine, { inspect: observed.observe }).start();
    kept({ close: () => app.stop() });
    const lit = () =>
      page.locator('.state.is-active').evaluateAll((all) => all.map((one) => one.getAttribute('data-state')));
    await page.locator('.state.is-active').nth(1).waitFor();
    expect(await lit()).toEqual(['player.sound.loud', 'player.picture.small']);
    for (const event of ['GROW', 'MUTE']) {
      await page.locator('.accepted', { hasText: event }).click();
      await page.getByRole('button', { name: `Send ${event}` }).click();
      await page.getByText(`${event} sent`).first().waitFor();
    }
    await page.locator('.state.is-active[data-state="player.sound.quiet"]').waitFor();
    await page.locator('.state.is-active[data-state="player.picture.large"]').waitFor();
    expect(app.getSnapshot().value).toEqual({ sound: 'quiet', picture: 'large' });
    await picture(page, 'parallel');
  });

  it('a run with a retry and an edited call: both are in Steps, and the timeline names the editor', async () => {
    const { server, observed } = await inspector(true);
    const page = await open(server);
    const down = new ModelError({ code: 'network', message: 'no route to the provider', retryable: true });
    const note = { type: 'tool-call', callId: 'call_1', name: approvedTool.name, args: '{"text":"a note"}' } as const;
    const model = scriptedModel([down, { parts: [note, { type: 'finish', reason: 'tool-calls' }] }, 'Done.']);
    const policies = { modelRetry: { baseMs: 1 } };
    const agent = kept(createAgent({ model, tools: [approvedTool], policies, inspect: observed.observe }));
    const conversation = await agent.open('retried');
    await conversation.send('Take a note').result;
    await conversation.decide({ callId: 'call_1', action: 'edit', args: { text: 'a better note' }, by: 'ada' });
    await conversation.resume().result;
    await page.locator('.note', { hasText: 'The model call failed. Attempt 2 asks' }).waitFor();
    const row = page.locator('.call-row', { hasText: 'edited by ada' });
    expect(await row.locator('.argument').textContent()).toBe('a better note');
    await row.click();
    await page.getByText('What the model asked for:').waitFor();
    await page.locator('#time').getByText('edited by ada').first().waitFor();
    await picture(page, 'edited');
  });

  it('controls are escapes and credentials are hidden in every view, in keys too', async () => {
    const { server } = await inspector();
    const page = await open(server);
    const base = { at: 0, conversationId: 'c', runId: 'r' };
    const hostileText = `${HOSTILE} ${KEY}`;
    const content = [{ type: 'text', text: hostileText }];
    const args = { [hostileText]: hostileText, text: hostileText };
    const call = { type: 'tool-call', callId: 'c0', name: HOSTILE, args };
    const entries = [
      { type: 'conversation', schema: 1, cwd: '/', createdAt: 0, runId: null },
      { type: 'run-started' },
      { type: 'user-message', messageId: 'm', kind: 'direct', content },
      { type: 'checkpoint', boundary: 'UserMessage' },
      { type: 'model-retry', turn: 1, attempt: 2, waitMs: 0, model: hostileText, reason: hostileText },
      { type: 'agent-output', item: { type: 'reasoning', text: hostileText } },
      { type: 'agent-output', item: call },
      { type: 'tool-started', callId: 'c0', idempotencyKey: hostileText },
      { type: 'tool-result', callId: 'c0', outcome: 'failed', content, code: HOSTILE },
      { type: 'state-changed', writes: args },
      { type: 'notice', code: hostileText, text: hostileText },
      { type: 'run-stop', reason: 'error', cause: HOSTILE },
    ].map((entry, seq) => JSON.stringify({ seq, ...base, ...entry }));
    await drop(page, entries.join('\n'), `${HOSTILE}.jsonl`);
    await page.locator('.note').first().waitFor();
    const check = async (view: string): Promise<void> => {
      const text = await readOn(page);
      expect(drives(text), view).toBe(false);
      expect(text, view).not.toContain('sk-proj');
      expect(text, view).toContain('\\u202egnp.exe');
    };
    for (const tab of ['Steps', 'Sequence', 'Context']) {
      await page.getByRole('tab', { name: tab }).click();
      for (const button of await page.locator('#steps button, .context footer button').all())
        if (await button.isVisible()) await button.click();
      await check(tab);
      await picture(page, `hostile-${tab}`);
    }
    await page.getByRole('tab', { name: 'Events' }).click();
    await page.keyboard.press('Home');
    for (const [seq] of entries.entries()) {
      const row = page.locator('.event.is-at .event-row');
      await row.click();
      await page.locator('.event-detail').waitFor();
      await check(`entry ${seq}`);
      if (seq === 6) await picture(page, 'hostile-Events');
      await row.click();
      await page.keyboard.press('j');
    }
  });
});
