/** The broker's counters over the time this page is open: rates and levels for the plots. */

import { signal } from "@preact/signals";
import { api } from "./broker";
import { health } from "./local";
import { answered_ms } from "./talks";

/** Samples kept: ten minutes at one in five seconds. */
const SAMPLES_MAX = 120;
export const SAMPLE_EVERY_MS = 5_000;

export interface Sample {
  at: number;
  /** Totals since the broker's start. */
  accepted: number;
  repeats: number;
  refused: number;
  /** Levels. */
  links: number;
  answered_ms: number;
  /** Of this host's outbox; undefined where it is not ours to see. */
  waiting: number | undefined;
  oldest_ms: number | undefined;
}

export const samples = signal<readonly Sample[]>([]);

export async function takeSample(): Promise<void> {
  const totals = parse(await api.get<string>("/metrics"));
  const at = Date.now();
  const meshes = health.peek()?.meshes;
  const oldest = meshes?.flatMap((mesh) => (mesh.oldest_queued_at ? [Date.parse(mesh.oldest_queued_at)] : []));
  const sample: Sample = {
    at,
    accepted: totals("cm_broker_messages_routed_total"),
    repeats: totals("cm_broker_messages_duplicate_total"),
    refused: totals("cm_broker_messages_rejected_total"),
    links: totals("cm_broker_connections_active"),
    answered_ms: answered_ms.peek(),
    waiting: meshes?.reduce((sum, { outbox }) => sum + outbox.pending + outbox.inflight, 0),
    oldest_ms: oldest && (oldest.length > 0 ? Math.max(0, at - Math.min(...oldest)) : 0),
  };
  samples.value = [...samples.value, sample].slice(-SAMPLES_MAX);
}

/** Rates a minute between neighbouring samples; a broker that restarted begins at nought again. */
export function rates(all: readonly Sample[], total: (sample: Sample) => number): number[] {
  return all.slice(1).map((sample, place) => {
    const before = all[place];
    if (!before || sample.at <= before.at) return 0;
    return (Math.max(0, total(sample) - total(before)) * 60_000) / (sample.at - before.at);
  });
}

/** Sums of each metric over its labels, from Prometheus text. */
export function parse(text: string): (name: string) => number {
  const sums = new Map<string, number>();
  for (const line of text.split("\n")) {
    const found = /^([a-z_]+)(?:\{[^}]*\})? (-?[0-9.e+]+)$/.exec(line);
    if (found?.[1]) sums.set(found[1], (sums.get(found[1]) ?? 0) + Number(found[2]));
  }
  return (name) => sums.get(name) ?? 0;
}
