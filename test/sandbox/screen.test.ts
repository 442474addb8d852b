import { describe, expect, it } from 'vitest';
import { fitted } from '../../sandbox/cli/screen.ts';
import { table } from '../../sandbox/cli/table.ts';
import { runSandbox } from '../support/process.ts';

describe('sandbox: what a terminal shows', () => {
  it('breaks what is too wide between words, below its own column, or below its row if that is narrow', () => {
    const text = ['  --seed TEXT  the same seed gives the same ids and secrets', 'no such thing as this', ''].join(
      '\n',
    );
    expect(fitted(text, undefined)).toBe(text);
    expect(fitted(text, 46).split('\n')).toEqual([
      '  --seed TEXT  the same seed gives the same',
      '               ids and secrets',
      'no such thing as this',
      '',
    ]);
    expect(fitted(text, 30).split('\n')).toEqual([
      '  --seed TEXT',
      '      the same seed gives the',
      '      same ids and secrets',
      'no such thing as this',
      '',
    ]);
  });

  it('leaves a row of many columns to the terminal', () => {
    const row = 'dlv_1  created  acknowledged  1';
    expect(fitted(row, 10)).toBe(row);
  });

  it('aligns amounts and counts to the right, behind wide characters too', () => {
    expect(
      table(
        ['order', 'amount', 'sent'],
        [
          ['注文', '5.00 BRL', 12],
          ['small', '12.50 BRL', 1],
          ['none', null, 0],
        ],
        '',
      ),
    ).toEqual(['ORDER     AMOUNT  SENT', '注文    5.00 BRL    12', 'small  12.50 BRL     1', 'none           -     0']);
  });

  it.each([
    [['clokc'], 'There is no command `settled sandbox clokc`. Did you mean clock? There are: serve, '],
    [['pay', '--hlep'], 'settled sandbox pay has no option --hlep. Did you mean --help? It has: --method, '],
    [['links', '--rul', 'x'], 'settled sandbox links has no option --rul. Did you mean --url? It has: --url, '],
    [['bake'], 'There is no command `settled sandbox bake`. There are: serve, '],
  ])('%j: names what was meant, if anything is like it', async (args, message) => {
    const { code, stderr } = await runSandbox(args);
    expect([code, stderr.slice(0, message.length)]).toEqual([64, message]);
  });
});
