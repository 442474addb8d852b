import { randomUUID } from 'node:crypto';
import type { Store } from '../../../src/store/contract.ts';
import { storeVerbs } from '../../../src/store/sqlite/client.ts';
import { type Call, type CallAnswer, openReader, openWriter } from '../../../src/store/sqlite/group_commit.ts';
import {
  type NumberedAnswer,
  type NumberedCall,
  pack,
  receiveError,
  recordsOfAnswers,
  recordsOfCalls,
  sendError,
  unpack,
} from '../../../src/store/sqlite/messages.ts';
import { openOptions } from './opening.ts';

/**
 * The engine without its threads, which take longer to start than most tests last. What is called and answered is packed
 * and copied as it is on its way between threads.
 */
export function openWithoutThreads(path: string, nowMs?: number): Store {
  const at = nowMs === undefined ? {} : { nowMs };
  const writer = openWriter({ ...openOptions(path, at), newId: randomUUID });
  const reader = openReader(path);
  const caller = (run: (call: Call) => CallAnswer) => ({
    call: async (verb: string, args: readonly unknown[]) => received(run(sent({ id: 0, verb, args }))),
  });
  return {
    ...storeVerbs({
      reader: caller((call) => reader.run(call)),
      writer: caller((call) => writer.run([call])[0] as CallAnswer),
    }),
    close: async () => {
      reader.close();
      writer.close();
    },
  } as Store;
}

function sent(call: NumberedCall): Call {
  const calls = [structuredClone(call)];
  const message = structuredClone({ packed: pack(recordsOfCalls(calls)), calls });
  unpack(recordsOfCalls(message.calls), message.packed);
  return message.calls[0] as Call;
}

function received(answer: CallAnswer): unknown {
  if (!answer.ok) throw receiveError(structuredClone(sendError(answer.error)));
  const answers: NumberedAnswer[] = [{ id: 0, ok: true, value: answer.value }];
  const packed = pack(recordsOfAnswers(answers));
  const message = structuredClone({ answers, packed });
  unpack(recordsOfAnswers(message.answers), message.packed);
  return (message.answers[0] as { value: unknown }).value;
}
