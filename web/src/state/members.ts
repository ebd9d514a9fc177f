/** Who is in the mesh, and when each node was last heard. */

import { computed, signal } from "@preact/signals";
import { type MemberList, address } from "../client";
import { api } from "./broker";

export const members = signal<MemberList | undefined>(undefined);
export const names = computed<ReadonlySet<string>>(() => new Set(members.value?.members.map((member) => member.name)));

export async function lookAtMembers(): Promise<void> {
  members.value = await api.get<MemberList>(address.members);
}

/** `agent on lab`, as far as it is known. */
export function describe(name: string): string {
  const member = members.value?.members.find((one) => one.name === name);
  if (!member) return "";
  return member.home ? `${member.kind} on ${member.home}` : `${member.kind} at the broker`;
}
