/** Names from pages and senders: tools of a page, and files to download. Their names and forms are foreign. */
import { describe, expect, it, onTestFinished } from 'vitest';
import * as z from 'zod';
import { createAgent, defineTool } from '../../src/index.ts';
import { answerOf, definitionOf } from '../../src/tools/tool.ts';
import { PAGE_TOOL } from '../../src/transports/chat/agUi.ts';
import { acceptPageTools } from '../../src/transports/chat/pageTools.ts';
import { createHandlers } from '../../src/transports/index.ts';
import { pdf } from '../support/sampleFiles.ts';
import { scripted } from '../support/scriptedReplies.ts';

describe('tools of a page', () => {
  const own = defineTool({ name: 'own', description: 'Own.', parameters: z.object({}), execute: () => 'own' });
  function pageOf() {
    const agent = createAgent({ model: scripted([]), tools: [own] });
    onTestFinished(() => agent.close());
    acceptPageTools(agent);
    const { toolbox } = agent.profile;
    const page = toolbox.ofConversation?.();
    if (!page) throw new Error('there is no toolbox for pages');
    return { toolbox, page, another: toolbox.ofConversation?.() };
  }
  const specs = (box: { specs: readonly { name: string }[] } | undefined) => box?.specs.map(({ name }) => name);

  it.each<[object, object]>([
    [{ name: 't' }, { name: 't', description: 't', parameters: { type: 'object' } }],
    [
      { name: 't', description: 'Does.' },
      { name: 't', description: 'Does.', parameters: { type: 'object' } },
    ],
    [
      { name: 't', description: '' },
      { name: 't', description: '', parameters: { type: 'object' } },
    ],
    [
      { name: 't', description: 7, parameters: [] },
      { name: 't', description: 't', parameters: { type: 'object' } },
    ],
    [
      { name: 't', parameters: { type: 'object', properties: { a: {} } } },
      { name: 't', description: 't', parameters: { type: 'object', properties: { a: {} } } },
    ],
  ])('%j is offered as %j', (tool, spec) => {
    const { page } = pageOf();
    page.offerPageTools([tool]);
    expect(page.specs).toEqual([expect.objectContaining({ name: 'own' }), spec]);
  });

  it.each([[7], ['t'], [{}], [[{}]], [[{ name: '' }]], [[{ name: 7 }]], [[{ name: 't' }, { description: 'x' }]]])(
    '%j are refused, and those before stay',
    (tools) => {
      const { page } = pageOf();
      page.offerPageTools([{ name: 'before' }]);
      expect(() => page.offerPageTools(tools)).toThrow(expect.objectContaining({ code: 'malformed' }));
      expect(specs(page)).toEqual(['own', 'before']);
    },
  );

  it('take the place of those before, leave the tools of the agent alone, and belong to one conversation', () => {
    const { toolbox, page, another } = pageOf();
    page.offerPageTools([{ name: 'a' }, { name: 'own', description: 'Not yours.' }]);
    expect([specs(page), page.find('own')?.description, page.find('a')?.name]).toEqual([['own', 'a'], 'Own.', 'a']);
    page.offerPageTools([{ name: 'b' }]);
    expect([specs(page), page.find('a')]).toEqual([['own', 'b'], undefined]);
    page.offerPageTools([]);
    expect([specs(page), specs(another), specs(toolbox)]).toEqual([['own'], ['own'], ['own']]);
  });

  const run = (decision?: object) => {
    const { page } = pageOf();
    page.offerPageTools([{ name: 't' }]);
    const definition = definitionOf(page.find('t') as never);
    return definition?.execute({} as never, { decision } as never) as unknown;
  };
  it('wait for the page, and have the result that it sends', () => {
    for (const decision of [undefined, { action: 'approve' }])
      expect(answerOf(run(decision))).toMatchObject({ status: 'pending', suspend: { reason: PAGE_TOOL } });
    const answer = (payload: object) => answerOf(run({ action: 'answer', payload }));
    expect(answer({ content: 'done' })).toMatchObject({ status: 'success', content: 'done' });
    expect(answer({})).toMatchObject({ status: 'success', content: '' });
    for (const error of ['broke', '']) {
      const failed = answer({ content: 'done', error });
      expect(failed).toMatchObject({ status: 'error' });
      expect(JSON.stringify(failed)).not.toContain('done');
    }
  });

  it.each([
    [{}, true],
    [{ a: [1] }, true],
    [[], false],
    ['a', false],
    [null, false],
    [7, false],
  ])('have %j as arguments: %s', async (args, isValid) => {
    const { page } = pageOf();
    page.offerPageTools([{ name: 't' }]);
    const read = await definitionOf(page.find('t') as never)?.parameters['~standard'].validate(args);
    expect(read).toEqual(isValid ? { value: args } : { issues: [{ message: 'the arguments must be an object' }] });
  });
});

describe('the name of a download', () => {
  it.each<[string | undefined, string]>([
    [undefined, 'attachment'],
    ['a.pdf', "attachment; filename*=UTF-8''a.pdf"],
    ['a b"c".pdf', "attachment; filename*=UTF-8''a%20b%22c%22.pdf"],
    ["it's (1)*.pdf", "attachment; filename*=UTF-8''it%27s%20%281%29%2a.pdf"],
    ['../../etc/passwd', "attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd"],
    ['a\r\nset-cookie: x=y', "attachment; filename*=UTF-8''aset-cookie%3A%20x%3Dy"],
    ['invoice\u202efdp.exe', "attachment; filename*=UTF-8''invoicefdp.exe"],
    ['a\u2028b\u2029c', "attachment; filename*=UTF-8''abc"],
    ['\u0000\u200b', 'attachment'],
    ['half \ud800 pair', "attachment; filename*=UTF-8''half%20%20pair"],
    ['😀é.pdf', "attachment; filename*=UTF-8''%F0%9F%98%80%C3%A9.pdf"],
  ])('%j is written as %s', async (name, disposition) => {
    const agent = createAgent({ model: scripted(['one']) });
    onTestFinished(() => agent.close());
    const conversation = await agent.open('c');
    await conversation.send([
      { type: 'file', mediaType: 'application/pdf', data: pdf, ...(name !== undefined && { name }) },
    ]).result;
    const [, hash] = /blob:([\w-]+)/.exec(JSON.stringify(conversation.log())) ?? [];
    await conversation.close();
    const response = await createHandlers(agent, { authorize: () => true })(
      new Request(`http://h/conversations/c/blobs/${hash}`),
    );
    const { headers } = response;
    expect([response.status, headers.get('content-disposition')]).toEqual([200, disposition]);
    expect(headers.get('set-cookie')).toBe(null);
    expect([
      headers.get('content-type'),
      headers.get('content-length'),
      headers.get('content-security-policy'),
    ]).toEqual(['application/octet-stream', `${pdf.length}`, "default-src 'none'; sandbox"]);
  });
});
