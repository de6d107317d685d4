/** `useAgent` in components that React mounts, with a document that has nothing but a root. */
import { act, createElement, Fragment, StrictMode } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { useAgent } from '../../src/react/index.ts';

class Opened {
  readonly id: string | undefined;
  isClosed = false;

  constructor(id: string | undefined) {
    this.id = id;
  }

  async close(): Promise<void> {
    this.isClosed = true;
  }
}

/** An agent whose openings wait until the test ends them. */
function slowAgent() {
  const openings: { id: string | undefined; end(error?: Error): Promise<void> }[] = [];
  const open = (id?: string): Promise<Opened> =>
    new Promise((resolve, reject) => {
      const settle = (error?: Error): void => (error ? reject(error) : resolve(new Opened(id)));
      openings.push({ id, end: (error) => act(async () => settle(error)) });
    });
  return { agent: { open }, openings };
}

/** An element without children: the components render nothing. */
function rootElement(): Element {
  const nothing = (): void => undefined;
  const ownerDocument = { nodeType: 9, defaultView: globalThis, addEventListener: nothing, activeElement: null };
  const element = { nodeType: 1, nodeName: 'DIV', tagName: 'DIV', ownerDocument, addEventListener: nothing };
  return { ...element, textContent: '', namespaceURI: 'http://www.w3.org/1999/xhtml' } as unknown as Element;
}

/** A component that shows what `useAgent` returns. */
function mounted(agent: { open(id?: string): Promise<Opened> }, around: typeof Fragment = Fragment) {
  const shown: (Opened | null)[] = [];
  function Shows({ id }: { id: string | undefined }) {
    shown.push(useAgent(agent, id));
    return null;
  }
  const root: Root = createRoot(rootElement());
  const show = (id?: string) => act(async () => root.render(createElement(around, null, createElement(Shows, { id }))));
  const leave = () => act(async () => root.unmount());
  onTestFinished(leave);
  return { shown, show, leave };
}

/** Timers of this turn fire. */
const turn = () => act(async () => new Promise((resolve) => setTimeout(resolve, 0)));

beforeAll(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  vi.stubGlobal('window', globalThis);
  vi.stubGlobal('HTMLIFrameElement', class {});
});
afterAll(() => void vi.unstubAllGlobals());

describe('a component that shows another conversation', () => {
  it('and soon the first one again shows it when it is open again, and never the closed one', async () => {
    const { agent, openings } = slowAgent();
    const { shown, show } = mounted(agent);
    await show('a');
    await openings[0]?.end();
    const [first] = shown.slice(-1);
    expect(first).toMatchObject({ id: 'a', isClosed: false });
    await show('b');
    expect(shown.at(-1)).toBeNull();
    await turn();
    expect(first?.isClosed).toBe(true);
    const before = shown.length;
    await show('a');
    expect(shown.slice(before).filter((conversation) => conversation?.isClosed)).toEqual([]);
    expect(shown.at(-1)).toBeNull();
    await openings.at(-1)?.end();
    expect(shown.at(-1)).toMatchObject({ id: 'a', isClosed: false });
    expect(shown.at(-1)).not.toBe(first);
  });
});

describe('a component that is mounted', () => {
  it.each(['a', undefined])(
    'with the id %s has one conversation until it is unmounted, which closes it',
    async (id) => {
      const { agent, openings } = slowAgent();
      const { shown, show, leave } = mounted(agent);
      await show(id);
      await show(id);
      expect([shown.at(-1), openings.map((opening) => opening.id)]).toEqual([null, [id]]);
      await openings[0]?.end();
      await show(id);
      const conversation = shown.at(-1);
      expect([openings.length, conversation?.isClosed]).toEqual([1, false]);
      await leave();
      await turn();
      expect(conversation?.isClosed).toBe(true);
    },
  );

  it('in StrictMode, which mounts it twice, opens one conversation', async () => {
    const { agent, openings } = slowAgent();
    const { shown, show } = mounted(agent, StrictMode);
    await show('a');
    await turn();
    await openings[0]?.end();
    await turn();
    expect(openings).toHaveLength(1);
    expect(shown.at(-1)).toMatchObject({ id: 'a', isClosed: false });
  });

  it('receives nothing of an opening that ends after it wants another conversation', async () => {
    const { agent, openings } = slowAgent();
    const { shown, show } = mounted(agent);
    await show('a');
    await show('b');
    await openings[1]?.end();
    await openings[0]?.end();
    await turn();
    expect(shown.flatMap((conversation) => conversation?.id ?? [])).toEqual(['b']);
  });

  it('throws the error of its opening, which an error boundary shows', async () => {
    const { agent, openings } = slowAgent();
    const { show } = mounted(agent);
    await show('a');
    await expect(openings[0]?.end(new Error('it is busy'))).rejects.toThrow('it is busy');
  });
});
