import type { Cancel, TurnableClock } from './clock.ts';
import { eventBody } from './events.ts';
import {
  aggregateStatus,
  type Environment,
  type EventKind,
  INSTALLMENTS_MAX,
  type Link,
  type LinkStatus,
  moneyOf,
  type Payment,
  type PaymentMethod,
  type PaymentMoney,
  Refusal,
  totalWithInterest,
} from './model.ts';
import type { Switches } from './options.ts';
import { linkDetails } from './resources.ts';
import type { Delivery, StoredEvent } from './store/deliveries.ts';
import type { NewLink } from './store/links.ts';
import type { SandboxStore } from './store/store.ts';

/** The spec does not say when a payment's money becomes available; here it takes 30 days. */
const AVAILABLE_AFTER_MS = 30 * 86_400_000;

export type PaymentChoice = {
  method: PaymentMethod;
  /** 1 for PIX, and for a card that is not charged in instalments. */
  installments: number;
  customer: { name: string | null; email: string | null } | null;
  /** Money that a customer cannot choose, and the service may report all the same; `asked` if it is left out. */
  money?: PaymentMoney;
};

export type ServiceOptions = {
  store: SandboxStore;
  clock: TurnableClock;
  environment: Environment;
  /** Where the sandbox is reached. */
  url: string;
  switches: () => Switches;
  /** Called when a delivery may be waiting to be sent. */
  onDelivery: () => void;
};

/** An event and its delivery; null if it is not sent. */
export type Emitted = { event: StoredEvent; delivery: Delivery | null };

/** The life of links and payments (spec section 3), and the events that it emits (section 6). */
export class Service {
  readonly #store: SandboxStore;
  readonly #clock: TurnableClock;
  readonly #options: ServiceOptions;
  #cancelExpiry: Cancel = () => {};

  constructor(options: ServiceOptions) {
    this.#options = options;
    this.#store = options.store;
    this.#clock = options.clock;
  }

  /** Starts to expire links. */
  start(): void {
    this.#watchExpiry();
  }

  /** Throws the refusal 404 if there is no such link. */
  link(id: string): Link {
    const link = this.#store.findLink({ id });
    if (link === null) throw new Refusal(404, 'link_not_found', `There is no payment link ${id}.`, 'id');
    return link;
  }

  payments(link: Link): Payment[] {
    return this.#store.paymentsOf(link.number);
  }

  /** The link as the API and the controls show it now. */
  details(link: Link) {
    const { url, switches } = this.#options;
    return linkDetails(link, this.payments(link), { url, switches: switches() });
  }

  create(given: Omit<NewLink, 'createdAtMs'>): Link {
    const link = this.#change(() => {
      const { externalReference } = given;
      if (externalReference !== null && this.#store.findLink({ externalReference }) !== null) {
        const message = `externalReference "${externalReference}" exists already for this merchant.`;
        throw new Refusal(409, 'duplicate_external_reference', message, 'externalReference');
      }
      const link = this.#store.addLink({ ...given, createdAtMs: this.#clock.nowMs() });
      this.#emit(link, 'payment_link.created', 'automatic');
      return link;
    });
    this.#watchExpiry();
    return link;
  }

  /** A customer chooses how to pay: the payment is PENDING. */
  startPayment(link: Link, { method, installments, customer, money = 'asked' }: PaymentChoice): Payment {
    this.#assertActive(link);
    const isPix = method === 'PIX';
    const most = isPix ? 1 : INSTALLMENTS_MAX;
    if (!Number.isInteger(installments) || installments < 1 || installments > most) {
      const message = isPix
        ? 'PIX has no instalments; choose CREDIT_CARD.'
        : `installments must be a whole number from 1 to ${most}.`;
      throw new Refusal(400, 'validation_error', message, 'installments');
    }
    // A payment without instalments has no interest: name that of the most instalments.
    const months = money === 'interest' && installments === 1 ? INSTALLMENTS_MAX : installments;
    const totalBRL = totalWithInterest(link.amount, months);
    const named = moneyOf(money, link, totalBRL);
    return this.#change(() => {
      this.#store.setLinkAmount(link.number, named.link);
      const changed = { ...link, amount: named.link };
      const before = aggregateStatus(this.payments(link));
      const payment = this.#store.addPayment({
        linkNumber: link.number,
        status: 'PENDING',
        createdAtMs: this.#clock.nowMs(),
        completedAtMs: null,
        availableAtMs: null,
        customer,
        method,
        installments,
        amount: named.quote,
        currency: named.currency,
        totalBRL,
      });
      if (before === 'NOT_STARTED') this.#emit(changed, 'payment_link.payment_status_changed', 'automatic');
      return payment;
    });
  }

  /**
   * Completes a pending payment. The link becomes INACTIVE, because it is single-use.
   *
   * @param paymentId null for the latest one
   */
  completePayment(link: Link, paymentId: string | null = null): Payment {
    this.#assertActive(link);
    return this.#change(() => {
      const payment = this.#latest(link, 'PENDING', paymentId);
      const wasCompleted = aggregateStatus(this.payments(link)) === 'COMPLETED';
      const completedAtMs = this.#clock.nowMs();
      const availableAtMs = completedAtMs + AVAILABLE_AFTER_MS;
      this.#store.completePayment(payment.number, completedAtMs, availableAtMs);
      this.#store.setLinkStatus(link.number, 'INACTIVE');
      const used: Link = { ...link, status: 'INACTIVE' };
      // A link that was enabled again may be paid again; its paymentStatus does not change then.
      if (!wasCompleted) this.#emit(used, 'payment_link.payment_status_changed', 'automatic');
      this.#emit(used, 'payment_link.status_changed', 'automatic');
      return { ...payment, status: 'COMPLETED', completedAtMs, availableAtMs };
    });
  }

  /** @param part how much of it; null for all */
  refund(link: Link, part: number | null = null): Payment {
    return this.#reverse(link, 'REFUNDED', part);
  }

  dispute(link: Link): Payment {
    return this.#reverse(link, 'DISPUTED');
  }

  /** The merchant wins the dispute of the latest payment, which is COMPLETED again. Emits no event. */
  winDispute(link: Link): Payment {
    const payment = this.#latest(link, 'DISPUTED');
    this.#store.setPaymentStatus(payment.number, 'COMPLETED');
    return { ...payment, status: 'COMPLETED' };
  }

  /** Lets the link expire now. */
  expire(link: Link): Link {
    const expired = this.#change(() => {
      const expiresAtMs = this.#clock.nowMs();
      this.#store.setExpiry(link.number, expiresAtMs);
      return this.#changeStatus({ ...link, expiresAtMs }, 'EXPIRED');
    });
    this.#watchExpiry();
    return expired;
  }

  setStatus(link: Link, status: LinkStatus): Link {
    const changed = this.#change(() => {
      const isPast = link.expiresAtMs !== null && link.expiresAtMs <= this.#clock.nowMs();
      if (status !== 'ACTIVE' || !isPast) return this.#changeStatus(link, status);
      // Without this an active link whose time has passed would expire again at once.
      this.#store.setExpiry(link.number, null);
      return this.#changeStatus({ ...link, expiresAtMs: null }, status);
    });
    this.#watchExpiry();
    return changed;
  }

  /** Emits an event of this kind about the link as it is, even if nothing changed. */
  emit(link: Link, kind: EventKind, origin: 'panel' | 'automatic'): Emitted {
    return this.#change(() => this.#emit(link, kind, origin));
  }

  /** Sends an event again, as a delivery like every other. */
  resend(event: StoredEvent): Delivery {
    if (this.#store.findLink({ number: event.linkNumber })?.webhookUrl === null) {
      throw new Refusal(404, 'no_webhook_url', `The link of event ${event.id} has no webhookUrl.`);
    }
    const nowMs = this.#clock.nowMs();
    return this.#change(() => this.#store.addDelivery({ event, origin: 'resend', nowMs }));
  }

  stop(): void {
    this.#cancelExpiry();
  }

  /** Runs a change and its events as one transaction, then wakes the dispatcher. */
  #change<T>(work: () => T): T {
    const result = this.#store.transaction(work);
    this.#options.onDelivery();
    return result;
  }

  /** In environment `sandbox` only the panel sends events (spec section 1). */
  #emit(link: Link, kind: EventKind, origin: 'panel' | 'automatic'): Emitted {
    const { environment, url, switches } = this.#options;
    const nowMs = this.#clock.nowMs();
    const payments = this.payments(link);
    const about = { linkNumber: link.number, kind, createdAtMs: nowMs };
    const event = this.#store.addEvent(about, (id) =>
      eventBody({ id, kind, link, payments, nowMs }, { url, switches: switches() }),
    );
    const isSilent = switches().deliveries === 'none' || environment !== 'production';
    const isSent = link.webhookUrl !== null && (origin === 'panel' || !isSilent);
    return { event, delivery: isSent ? this.#store.addDelivery({ event, origin, nowMs }) : null };
  }

  #changeStatus(link: Link, status: LinkStatus): Link {
    if (link.status === status) return link;
    this.#store.setLinkStatus(link.number, status);
    const changed = { ...link, status };
    this.#emit(changed, 'payment_link.status_changed', 'automatic');
    return changed;
  }

  #reverse(link: Link, status: 'REFUNDED' | 'DISPUTED', part: number | null = null): Payment {
    return this.#change(() => {
      const payments = this.payments(link);
      const before = payments.findLast((payment) => ['REFUNDED', 'DISPUTED'].includes(payment.status));
      if (before !== undefined && !payments.some((payment) => payment.status === 'COMPLETED')) {
        const message = `Link ${link.id}: its payment is ${before.status} already.`;
        throw new Refusal(400, 'payment_reversed', message);
      }
      const payment = this.#latest(link, 'COMPLETED');
      const reversed = part === null ? this.#store.reversePayment(payment, status) : this.#refundPart(payment, part);
      if (this.#options.switches()['refund-event'] !== 'none') {
        this.#emit(link, 'payment_link.payment_status_changed', 'automatic');
      }
      return reversed;
    });
  }

  /** The service has no word for it: a switch says how it is listed. */
  #refundPart(payment: Payment, part: number): Payment {
    if (part > payment.amount) {
      throw new Refusal(400, 'validation_error', `amount must be at most ${payment.amount}.`, 'amount');
    }
    if (this.#options.switches()['partial-refund'] === 'in-place') {
      return this.#store.reversePayment({ ...payment, amount: part }, 'REFUNDED');
    }
    const createdAtMs = this.#clock.nowMs();
    return this.#store.addPayment({ ...payment, createdAtMs, status: 'REFUNDED', amount: part, totalBRL: part });
  }

  #assertActive({ id, status }: Link): void {
    if (status === 'ACTIVE') return;
    throw new Refusal(403, 'link_not_active', `Link ${id} is ${status} and cannot be paid.`);
  }

  #latest(link: Link, status: Payment['status'], paymentId: string | null = null): Payment {
    const payment = this.payments(link).findLast(
      (payment) => payment.status === status && (paymentId === null || payment.id === paymentId),
    );
    if (payment !== undefined) return payment;
    throw new Refusal(404, 'payment_not_found', `Link ${link.id} has no payment that is ${status}.`);
  }

  /** Sets a timer for the next link that expires. */
  #watchExpiry(): void {
    this.#cancelExpiry();
    const nextMs = this.#store.nextExpiryMs();
    if (nextMs === null) return;
    this.#cancelExpiry = this.#clock.after(Math.max(0, nextMs - this.#clock.nowMs()), () => {
      this.#change(() => {
        for (const link of this.#store.expiredLinks(this.#clock.nowMs())) this.#changeStatus(link, 'EXPIRED');
      });
      this.#watchExpiry();
    });
  }
}
