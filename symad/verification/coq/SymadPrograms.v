(** Terms to statements, and reverse mode over programs.

    [compile] breaks terms into statements of one operation each; [sweep] appends the statements of reverse mode.
    Everything here computes on syntax; the real numbers appear in the theorems only. *)

Require Import Reals Lra Lia List ZArith QArith Qreals RMicromega PArith FMapPositive.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadStatements SymadElementary.
Import ListNotations.
Open Scope R_scope.

(** ** Terms to statements *)

Fixpoint compile (rho : positive -> positive) (t : term) (s : state) : positive * state :=
  match t with
  | Var k => (rho k, s)
  | Int z => emit (OConst (inject_Z z)) s
  | Pi => emit OPi s
  | Add a b => let (i, s) := compile rho a s in let (j, s) := compile rho b s in emit (OAdd i j) s
  | Sub a b =>
    let (i, s) := compile rho a s in
    let (j, s) := compile rho b s in
    let (m, s) := emit (OOpp j) s in emit (OAdd i m) s
  | Mul a b => let (i, s) := compile rho a s in let (j, s) := compile rho b s in emit (OMul i j) s
  | Div a b =>
    let (i, s) := compile rho a s in
    let (j, s) := compile rho b s in
    let (m, s) := invert FUEL j s in emit (OMul i m) s
  | Opp a => let (i, s) := compile rho a s in emit (OOpp i) s
  | Pow a n => let (i, s) := compile rho a s in emit (OPow i n) s
  | App f a => let (i, s) := compile rho a s in apply1 f i s
  | App2 g a b => let (i, s) := compile rho a s in let (j, s) := compile rho b s in apply2 g i j s
  end.

(** The conditions under which a term has a derivative. *)
Fixpoint needs (t : term) : list (fn * term) :=
  match t with
  | Var _ | Int _ | Pi => []
  | Add a b | Sub a b | Mul a b => needs a ++ needs b
  | Div a b => (Inv, b) :: needs a ++ needs b
  | Opp a | Pow a _ => needs a
  | App f a => (f, a) :: needs a
  | App2 g a b => needs2 g a b ++ needs a ++ needs b
  end.

Definition all_hold (rho : positive -> R) : list (fn * term) -> Prop := List.Forall (holds rho).

Lemma holds_needs2 rho g a b :
  all_hold rho (needs2 g a b) -> domain2 g (eval rho a) (eval rho b).
Proof.
  unfold domain2, all_hold. destruct g; cbv [needs2]; intros H; auto;
    inversion H as [|c r H1 H2]; subst; constructor; auto.
Qed.

Lemma Q2R_inject z : Q2R (inject_Z z) = IZR z.
Proof. unfold Q2R, inject_Z. simpl. field. Qed.

Opaque invert apply1 apply2.

Theorem gen_compile rho t : forall s k s', compile rho t s = (k, s') ->
  gen s s' (fun v => all_hold (fun j => v (rho j)) (needs t)) (fun v => v k = eval (fun j => v (rho j)) t).
Proof.
  unfold all_hold.
  induction t as [j|z| |a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa b IHb|a IHa|a IHa n|f a IHa|g a IHa b IHb];
    intros s k s'; cbn [compile].
  - intros E; inversion E; subst. now apply gen_here.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
    intros _ v _ H. rewrite H. apply Q2R_inject.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0) (gen_emit _ _ _ _ E3))).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. apply List.Forall_app in H. tauto.
    + intros _ v _ (C1 & C2 & C3). now rewrite C3, C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0)
      (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_emit _ _ _ _ E3)))).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. apply List.Forall_app in H. tauto.
    + intros _ v _ (C1 & C2 & C3 & C4). now rewrite C4, C3, C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0) (gen_emit _ _ _ _ E3))).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. apply List.Forall_app in H. tauto.
    + intros _ v _ (C1 & C2 & C3). now rewrite C3, C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0)
      (gen_then _ _ _ _ _ _ _ (gen_invert _ _ _ _ _ E1) (gen_emit _ _ _ _ E3)))).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. inversion H as [|c r H1 H2]; subst. apply List.Forall_app in H2.
      unfold holds in H1; simpl in H1. split; [tauto|]. intros C1. split; [tauto|].
      intros C2. rewrite C2. split; [exact H1 | auto].
    + intros _ v _ (C1 & C2 & C3 & C4). now rewrite C4, C3, C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_emit _ _ _ _ E3)).
    apply (gen_weaken _ _ _ _ _ _ G); simpl; [tauto|].
    intros _ v _ (C1 & C2). now rewrite C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_emit _ _ _ _ E3)).
    apply (gen_weaken _ _ _ _ _ _ G); simpl; [tauto|].
    intros _ v _ (C1 & C2). now rewrite C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_apply1 _ _ _ _ _ E3)).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. inversion H as [|c r H1 H2]; subst. split; auto. intros C1. now rewrite C1.
    + intros _ v _ (C1 & C2). now rewrite C2, C1.
  - repeat step_gen. intros E3.
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0) (gen_apply2 _ _ _ _ _ _ E3))).
    apply (gen_weaken _ _ _ _ _ _ G); simpl.
    + intros v H. rewrite !List.Forall_app in H. split; [tauto|]. intros C1. split; [tauto|]. intros C2.
      rewrite C1, C2. apply holds_needs2. apply H.
    + intros _ v _ (C1 & C2 & C3). now rewrite C3, C2, C1.
Qed.

(** ** Reverse mode *)

Definition adjoints := list (positive * positive).
(** Pairs of a value and its adjoint, the last value first. *)

Definition total (v D : valuation) (l : adjoints) : R :=
  fold_right (fun p r => v (snd p) * D (fst p) + r) 0 l.

Fixpoint insert (a c : positive) (l : adjoints) (s : state) : adjoints * state :=
  match l with
  | [] => ([(a, c)], s)
  | (b, d) :: r =>
    if Pos.eqb b a then let (e, s) := emit (OAdd d c) s in ((b, e) :: r, s)
    else if Pos.ltb b a then ((a, c) :: (b, d) :: r, s)
    else let (r, s) := insert a c r s in ((b, d) :: r, s)
  end.

Lemma gen_insert a c l : forall s l' s', insert a c l s = (l', s') ->
  gen s s' (fun _ => True) (fun v => forall D, total v D l' = total v D l + v c * D a).
Proof.
  induction l as [|[b d] r IH]; intros s l' s'; cbn [insert].
  - intros E; inversion E; subst. apply gen_here. intros _ v _ D. simpl. ring.
  - destruct (Pos.eqb_spec b a) as [->|N].
    + step_gen. intros X; inversion X; subst. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
      intros _ v _ C D. rewrite C. ring.
    + destruct (Pos.ltb b a).
      * intros E; inversion E; subst. apply gen_here. intros _ v _ D. simpl. ring.
      * step_gen. intros X; inversion X; subst. apply IH in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
        intros _ v _ C D. rewrite C. ring.
Qed.

Definition names (a b k j : positive) : positive :=
  match j with 1%positive => a | 2%positive => b | _ => k end.

(** The derivatives of an operation with respect to its arguments, as terms of [Var 1] and [Var 2], the
    arguments, and [Var 3], the value. *)
Definition partials (o : op) : list (positive * term) * (positive * positive) :=
  match o with
  | OConst _ | OPi => ([], (1%positive, 1%positive))
  | OAdd a b => ([(a, Int 1); (b, Int 1)], (a, b))
  | OMul a b => ([(a, Var 2); (b, Var 1)], (a, b))
  | OOpp a => ([(a, Opp (Int 1))], (a, a))
  | OPow a n => ([(a, Mul (Int (Z.of_nat n)) (Pow (Var 1) (pred n)))], (a, a))
  | OApp f a => ([(a, slope1 f)], (a, a))
  | OApp2 g a b => ([(a, fst (slope2 g)); (b, snd (slope2 g))], (a, b))
  end.

Definition rename (o : op) (k : positive) : positive -> positive :=
  let (a, b) := snd (partials o) in names a b k.

Definition slopes (v D : valuation) (rho : positive -> positive) (l : list (positive * term)) : R :=
  fold_right (fun p r => eval (fun j => v (rho j)) (snd p) * D (fst p) + r) 0 l.

Definition tangent (v D : valuation) (k : positive) (o : op) : R := slopes v D (rename o k) (fst (partials o)).

Definition scaled (rho : positive -> positive) (r : positive) (p : term) (s : state) : positive * state :=
  match p with
  | Int 1 => (r, s)
  | Opp (Int 1) => emit (OOpp r) s
  | _ => let (i, s) := compile rho p s in emit (OMul r i) s
  end.

Definition never (v : valuation) : Prop := False.

Lemma gen_scaled rho r p s k s' :
  scaled rho r p s = (k, s') -> gen s s' never (fun v => v k = v r * eval (fun j => v (rho j)) p).
Proof.
  assert (G : (let (i, s1) := compile rho p s in emit (OMul r i) s1) = (k, s') ->
              gen s s' never (fun v => v k = v r * eval (fun j => v (rho j)) p)).
  { step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_compile _ _ _ _ _ E) (gen_emit _ _ _ _ E1)).
    apply (gen_weaken _ _ _ _ _ _ G); [contradiction|]. simpl. intros _ v _ (C1 & C2). now rewrite C2, C1. }
  unfold scaled. destruct p; try exact G.
  - destruct z as [|[]|]; try exact G. intros E; inversion E; subst. apply gen_here. intros. simpl. ring.
  - destruct p; try exact G. destruct z as [|[]|]; try exact G.
    intros E; apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto. intros _ v _ C. rewrite C. ring.
Qed.

Fixpoint contribute (rho : positive -> positive) (r : positive) (l : list (positive * term)) (acc : adjoints)
    (s : state) : adjoints * state :=
  match l with
  | [] => (acc, s)
  | (a, p) :: l =>
    let (c, s) := scaled rho r p s in
    let (acc, s) := insert a c acc s in contribute rho r l acc s
  end.

Lemma gen_contribute rho r l : forall acc s acc' s', contribute rho r l acc s = (acc', s') ->
  gen s s' never (fun v => forall D, total v D acc' = total v D acc + v r * slopes v D rho l).
Proof.
  induction l as [|[a p] l IH]; intros acc s acc' s'; cbn [contribute].
  - intros E; inversion E; subst. apply gen_here. intros _ v _ D. simpl. ring.
  - repeat step_gen. intros E1.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_scaled _ _ _ _ _ _ E)
      (gen_then _ _ _ _ _ _ _ (gen_insert _ _ _ _ _ _ E0) (IH _ _ _ _ E1))).
    apply (gen_weaken _ _ _ _ _ _ G); [contradiction|].
    intros _ v _ (C1 & C2 & C3) D. rewrite C3, C2, C1. simpl. ring.
Qed.

(** Reverse mode, from the last statement to the first; the adjoints left at the end are those of inputs. *)
Fixpoint sweep (c : code) (acc : adjoints) (s : state) : adjoints * state :=
  match c with
  | [] => (acc, s)
  | (k, o) :: c =>
    match acc with
    | [] => ([], s)
    | (j, r) :: rest =>
      if Pos.eqb j k then
        let (acc, s) := contribute (rename o k) r (fst (partials o)) rest s in sweep c acc s
      else sweep c acc s
    end
  end.

(** The invariant of reverse mode: Σ r_k t_k is the same before and after each statement. *)
Theorem gen_sweep c : forall acc s acc' s', sweep c acc s = (acc', s') ->
  gen s s' never (fun v => forall D, List.Forall (fun p => D (fst p) = tangent v D (fst p) (snd p)) c ->
    total v D acc' = total v D acc).
Proof.
  induction c as [|[k o] c IH]; intros acc s acc' s'; cbn [sweep].
  - intros E; inversion E; subst. now apply gen_here.
  - destruct acc as [|[j r] rest].
    + intros E; inversion E; subst. now apply gen_here.
    + destruct (Pos.eqb_spec j k) as [->|N].
      * step_gen. intros E1.
        assert (G := gen_then _ _ _ _ _ _ _ (gen_contribute _ _ _ _ _ _ _ E) (IH _ _ _ _ E1)).
        apply (gen_weaken _ _ _ _ _ _ G); [contradiction|].
        intros _ v _ (C1 & C2) D H. inversion H as [|x y H1 H2]; subst.
        rewrite (C2 D H2), C1. simpl in *. rewrite H1. unfold tangent. ring.
      * intros E. apply IH in E. apply (gen_weaken _ _ _ _ _ _ E); auto.
        intros _ v _ C D H. inversion H; subst. now apply C.
Qed.
