/** The inspector in a server of your own, in a real browser. */
import { existsSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { proves } from '../support/tier.ts';
import { asks, CHROMIUM, inspectedPages } from './browserPages.ts';

describe.skipIf(!proves || !existsSync(CHROMIUM))('the page in a server of your own', () => {
  const { hosted, open, agentOf } = inspectedPages();

  it('shows a run live, decides in the name of its user, and connects again after a cut', async () => {
    const agent = agentOf([asks(), 'Done.', 'Seen again.']);
    const isUser = (request: Request): string | false =>
      /\bsession=right\b/.test(`${request.headers.get('cookie')}`) && 'ada';
    const { url, cut } = await hosted(agent, { authorize: isUser, basePath: '/admin/inspector', control: true });
    const conversation = await agent.open('live');
    await conversation.send('Take a note').result;
    // Without the last slash, and with a query of the host's own.
    const page = await open({ url: `${url}/admin/inspector?token=own` }, (opened) =>
      opened.context().addCookies([{ name: 'session', value: 'right', url }]),
    );
    expect(new URL(page.url()).pathname).toBe('/admin/inspector/');
    await page.getByText('Take a note').first().waitFor();
    const allow = page.getByRole('button', { name: /^allow/i }).first();
    await allow.waitFor();
    await allow.click();
    await page.getByText('Done.').first().waitFor();
    expect(conversation.log().find(({ type }) => type === 'decision')).toMatchObject({ decision: { by: 'ada' } });
    cut();
    await conversation.send('Once more').result;
    await page.getByText('Seen again.').first().waitFor();
  });
});
