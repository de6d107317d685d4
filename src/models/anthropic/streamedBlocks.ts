/**
 * The blocks of a reply, joined from their pieces, as the provider needs them back. Invariant: a block that the provider
 * would refuse is left out: thinking without a signature, and a call of its own tool that has no result. Beside calls of the
 * agent's tools such a call stays, because the provider runs it when it receives their results.
 */
import type { FinishReason, Json } from '../../../machines/vocabulary.ts';
import type { Block } from '../wire/replyBlocks.ts';
import { isRecord, parseJson, plainCopy, type WireRecord } from '../wire/wireJson.ts';

const BLOCK_DEPTH = 32;

export const textOf = (value: unknown): string => (typeof value === 'string' ? value : '');

export interface StreamedBlock {
  readonly type: string;
  /** The content in the block's start event. */
  readonly content: WireRecord;
  text: string;
  thinking: string;
  signature: string;
  /** JSON text. */
  input: string;
  citations: unknown[];
}

/** Returns the blocks in the form in which a message keeps them. `isSigned`: the provider refuses thinking without a signature. */
export function keptBlocks(
  blocks: readonly StreamedBlock[],
  { reason, isSigned }: { reason: FinishReason; isSigned: boolean },
): readonly Block[] {
  const answered = new Set(blocks.map(({ content }) => content.tool_use_id));
  return blocks.flatMap((block): Block[] => {
    switch (block.type) {
      case 'tool_use':
        return [{ type: 'call' }];
      case 'text':
        return [textBlock(block)];
      case 'thinking':
        if (block.signature === '' && isSigned) return [];
        return executed({ ...block.content, thinking: block.thinking, signature: block.signature });
      case 'server_tool_use':
      case 'mcp_tool_use':
        if (reason !== 'tool-calls' && !answered.has(block.content.id)) return [];
        return executed({ ...block.content, input: inputOf(block) });
      default:
        return executed(block.content);
    }
  });
}

function textBlock({ text, content, citations }: StreamedBlock): Block {
  const whole = Array.isArray(content.citations) ? content.citations : [];
  const copy = plainCopy([...whole, ...citations], BLOCK_DEPTH);
  const hasCitations = Array.isArray(copy) && copy.length > 0;
  return { type: 'text', text, ...(hasCitations && { options: { anthropic: { citations: copy as Json } } }) };
}

function executed(content: WireRecord): Block[] {
  const part = plainCopy(content, BLOCK_DEPTH);
  return part === undefined ? [] : [{ type: 'executed', part }];
}

function inputOf({ input, content }: StreamedBlock): unknown {
  const parsed = input === '' ? content.input : parseJson(input);
  return isRecord(parsed) ? parsed : {};
}
