import { expect, it } from 'vitest';
import { NO_DETAILS } from '../../../src/domain/payment_details.ts';
import { said, worldOf } from '../contract/world.ts';
import { holding, untilBehind } from './locks.ts';
import { newDatabase, openUntilEnd } from './opening.ts';

const DAY_MS = 86_400_000;

it('a customer is not dropped from an order that another replica works on, and does not come back with what that writes', async () => {
  const url = await newDatabase();
  const open = async (replica: string) => {
    return (await openUntilEnd(url, { replica })).store;
  };
  const [settling, dropping] = [await open('settling'), await open('dropping')];
  const world = worldOf(settling);
  const link = await world.newLink();
  const ana = { ...NO_DETAILS, paymentId: 'pay_1', customerName: 'Ana' };
  await world.settle(link, [said('completed')], { details: [ana] });
  world.tick(DAY_MS);
  const event = await world.claimNew(link);
  const drop = () => dropping.dropCustomers({ untilMs: world.nowMs - 1000, limit: 10, sendsNotices: false });
  // Holds up whoever writes what is known of the payment, after it has locked the order and read that.
  const holder = await holding(url, 'SELECT 1 FROM payment FOR UPDATE');
  const settled = settling.settle(world.job(event, { details: [{ ...ana, method: 'PIX' }] }));
  await untilBehind(holder);
  expect(await drop()).toEqual({ dropped: 0, isMore: false });
  await holder.query('ROLLBACK');
  await settled;
  expect(await drop()).toEqual({ dropped: 1, isMore: false });
  const order = await settling.findOrder(link.reference);
  expect(order?.details).toMatchObject([{ method: 'PIX', customerName: null, isForgotten: true }]);
});
