import { proveMillion } from './move_million.ts';

const broken = await proveMillion(Number(process.argv[2] ?? 1_000_000), (line) => process.stdout.write(`${line}\n`));
console.log(broken);
