/** `runchart serve` lists every session of its directory, at any position in the list of the store. */
import { expect, test } from 'vitest';
import { sessionsIn } from '../../src/cli/sessions/sessionStore.ts';
import type { ConversationInfo, ListOptions } from '../../src/stores/logStore.ts';

const OWN = '/work';
const rowOf = (index: number, cwd: string) => ({ id: `s${index}`, cwd, cursor: `${index}` }) as ConversationInfo;

/** A store with these rows, which counts its lists. */
function listing(rows: readonly ConversationInfo[]) {
  const lists = { count: 0 };
  const list = async ({ limit = Number.POSITIVE_INFINITY, cursor }: ListOptions = {}) => {
    lists.count += 1;
    const from = cursor === undefined ? 0 : rows.findIndex((row) => row.cursor === cursor) + 1;
    return rows.slice(from, from + limit);
  };
  return { agent: { list }, lists };
}

/** Below, at and above one page of all sessions, and several pages. */
const SIZES = [0, 1, 199, 200, 201, 399, 400, 401, 650];
/** The places of the sessions of this directory. */
const PLACES: { readonly [name: string]: (index: number, size: number) => boolean } = {
  'all of them': () => true,
  none: () => false,
  'the first one': (index) => index === 0,
  'the last one': (index, size) => index === size - 1,
  'every 59th': (index) => index % 59 === 0,
  'those around the end of a page': (index) => index % 200 === 0 || index % 200 === 199,
};

test.each(Object.entries(PLACES))(
  'if %s of all sessions belong to it, each is found once, in pages of any size',
  async (_, isOwn) => {
    for (const size of SIZES) {
      const rows = Array.from({ length: size }, (__, index) => rowOf(index, isOwn(index, size) ? OWN : '/other'));
      const expected = rows.filter(({ cwd }) => cwd === OWN);
      const { agent, lists } = listing(rows);
      expect(await sessionsIn(OWN, agent)).toEqual(expected);
      expect(lists.count).toBeLessThanOrEqual(Math.floor(size / 200) + 1);
      for (const limit of [1, 3, 200, 1_000]) {
        if (expected.length / limit > 20) continue;
        const found: ConversationInfo[] = [];
        for (let cursor: string | undefined; ; cursor = found.at(-1)?.cursor) {
          const page = await sessionsIn(OWN, agent, { limit, ...(cursor !== undefined && { cursor }) });
          expect(page.length).toBeLessThanOrEqual(limit);
          found.push(...page);
          if (page.length < limit) break;
        }
        expect([size, limit, found]).toEqual([size, limit, expected]);
      }
    }
  },
);

test('the owner and the status that are asked for limit every page', async () => {
  const asked: (ListOptions | undefined)[] = [];
  const rows = Array.from({ length: 200 }, (_, index) => rowOf(index, OWN));
  const list = async (options?: ListOptions) => (asked.push(options) === 1 ? rows : []);
  await sessionsIn(OWN, { list }, { owner: 'ann', status: 'waiting', limit: 300 });
  const every = { owner: 'ann', status: 'waiting', limit: 200 };
  expect(asked).toEqual([every, { ...every, cursor: '199' }]);
});
