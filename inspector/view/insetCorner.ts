/**
 * Chooses the corner of the canvas for an inset. Invariant: highlighted elements stay visible if possible. Among such
 * corners the one that covers least is chosen.
 */
export interface Box {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

export interface Drawn extends Box {
  readonly isLit: boolean;
}

export const CORNERS = ['bottom right', 'top right', 'bottom left', 'top left'] as const;
export type Corner = (typeof CORNERS)[number];

const MARGIN = 12;

function boxAt(corner: Corner, card: { width: number; height: number }, room: { width: number; height: number }): Box {
  const x = corner.endsWith('left') ? MARGIN : room.width - card.width - MARGIN;
  const y = corner.startsWith('top') ? MARGIN : room.height - card.height - MARGIN;
  return { ...card, x, y };
}

/** A line has no area, so its overlap counts as one pixel wide. */
function shared(one: Box, other: Box): number {
  const width = Math.min(one.x + one.width, other.x + other.width) - Math.max(one.x, other.x);
  const height = Math.min(one.y + one.height, other.y + other.height) - Math.max(one.y, other.y);
  return width < 0 || height < 0 ? 0 : Math.max(1, width) * Math.max(1, height);
}

export interface Placing {
  readonly drawn: readonly Drawn[];
  readonly card: { readonly width: number; readonly height: number };
  readonly room: { readonly width: number; readonly height: number };
  /** The current corner is kept as long as it covers nothing highlighted. */
  readonly now?: Corner;
}

/** `isCovering` is true if every corner would cover something highlighted. */
export function cornerFor({ drawn, card, room, now }: Placing): { corner: Corner; isCovering: boolean } {
  const costs = CORNERS.map((corner) => {
    const box = boxAt(corner, card, room);
    const isCovering = drawn.some((one) => one.isLit && shared(one, box) > 0);
    return { corner, isCovering, cost: drawn.reduce((sum, one) => sum + shared(one, box), 0) };
  });
  const free = costs.filter(({ isCovering }) => !isCovering);
  const stays = free.find(({ corner }) => corner === now);
  const [best] = stays ? [stays] : free.sort((a, b) => a.cost - b.cost);
  return { corner: best?.corner ?? 'bottom right', isCovering: best === undefined };
}
