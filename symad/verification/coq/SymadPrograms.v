(** Programs of real numbers, and reverse mode over them.

    A [term] is an expression as the user wrote it, a [prog] gives names to some of its parts. [compile]
    breaks terms into statements of one operation each; [sweep] appends the statements of reverse mode.
    Everything here computes on syntax; the real numbers appear in the theorems only. *)

Require Import Reals Lra Lia List ZArith QArith Qreals RMicromega PArith FMapPositive.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions.
Import ListNotations.
Open Scope R_scope.

Module M := PositiveMap.

(** ** Functions, their domains, and their derivatives *)

Inductive fn :=
  | Inv | Exp | Log | Sqrt | Sin | Cos | Tan | Sec | Csc | Cot | Asin | Acos | Atan | Acot
  | Sinh | Cosh | Tanh | Sech | Csch | Coth | Asinh | Acosh | Atanh
  | Sigmoid | Softplus | Logcosh | Silu | Log1p | Expm1 | Log2 | Log10 | Exp2
  | Abs | Sign | Heaviside | Erf | Erfc | Erfi | Fresnels | Fresnelc.

Inductive fn2 := Power | Logaddexp | Hypot | Xlogy | Maximum | Minimum | Less.

Definition value1 (f : fn) : R -> R :=
  match f with
  | Inv => Rinv | Exp => exp | Log => ln | Sqrt => sqrt | Sin => sin | Cos => cos | Tan => tan
  | Sec => sec | Csc => csc | Cot => cot | Asin => asin | Acos => acos | Atan => atan | Acot => acot
  | Sinh => sinh | Cosh => cosh | Tanh => tanh | Sech => sech | Csch => csch | Coth => coth
  | Asinh => arcsinh | Acosh => acosh | Atanh => atanh
  | Sigmoid => sigmoid | Softplus => softplus | Logcosh => logcosh | Silu => silu
  | Log1p => log1p | Expm1 => expm1 | Log2 => log2 | Log10 => log10 | Exp2 => exp2
  | Abs => Rabs | Sign => sign | Heaviside => heaviside | Erf => erf | Erfc => erfc | Erfi => erfi
  | Fresnels => fresnels | Fresnelc => fresnelc
  end.

Definition value2 (g : fn2) : R -> R -> R :=
  match g with
  | Power => Rpower | Logaddexp => logaddexp | Hypot => hypot | Xlogy => xlogy
  | Maximum => Rmax | Minimum => Rmin | Less => less
  end.

Definition domain1 (f : fn) (x : R) : Prop :=
  match f with
  | Inv | Acot | Csch | Coth | Abs | Sign | Heaviside => x <> 0
  | Log | Sqrt | Log2 | Log10 => 0 < x
  | Tan | Sec => cos x <> 0
  | Csc | Cot => sin x <> 0
  | Asin | Acos | Atanh => -1 < x < 1
  | Acosh => 1 < x
  | Log1p => -1 < x
  | _ => True
  end.

Inductive term :=
  | Var (k : positive)
  | Int (z : Z)
  | Pi
  | Add (a b : term)
  | Sub (a b : term)
  | Mul (a b : term)
  | Div (a b : term)
  | Opp (a : term)
  | Pow (a : term) (n : nat)
  | App (f : fn) (a : term)
  | App2 (g : fn2) (a b : term).

Fixpoint eval (rho : positive -> R) (t : term) : R :=
  match t with
  | Var k => rho k
  | Int z => IZR z
  | Pi => PI
  | Add a b => eval rho a + eval rho b
  | Sub a b => eval rho a - eval rho b
  | Mul a b => eval rho a * eval rho b
  | Div a b => eval rho a / eval rho b
  | Opp a => - eval rho a
  | Pow a n => eval rho a ^ n
  | App f a => value1 f (eval rho a)
  | App2 g a b => value2 g (eval rho a) (eval rho b)
  end.

(** The conditions under which a function of two arguments has a derivative. *)
Definition needs2 (g : fn2) (a b : term) : list (fn * term) :=
  match g with
  | Power => [(Log, a)]
  | Hypot => [(Log, Add (Pow a 2) (Pow b 2))]
  | Xlogy => [(Log, b)]
  | Logaddexp => []
  | Maximum | Minimum => [(Inv, Sub a b)]
  | Less => [(Inv, Sub b a)]
  end.

Definition holds (rho : positive -> R) (c : fn * term) : Prop := domain1 (fst c) (eval rho (snd c)).

Definition args2 (x y z : R) (k : positive) : R :=
  match k with 1%positive => x | 2%positive => y | _ => z end.

Definition domain2 (g : fn2) (x y : R) : Prop :=
  List.Forall (holds (args2 x y 0)) (needs2 g (Var 1) (Var 2)).

(** The derivative of a function: of the argument, [Var 1], and the value, [Var 3]. *)
Definition slope1 (f : fn) : term :=
  let x := Var 1 in
  let y := Var 3 in
  match f with
  | Inv => Opp (Pow y 2)
  | Exp => y
  | Log => App Inv x
  | Sqrt => App Inv (Mul (Int 2) y)
  | Sin => App Cos x
  | Cos => Opp (App Sin x)
  | Tan => Add (Int 1) (Pow y 2)
  | Sec => Mul (App Tan x) y
  | Csc => Mul (Opp (App Cot x)) y
  | Cot => Sub (Opp (Pow y 2)) (Int 1)
  | Asin => App Inv (App Sqrt (Sub (Int 1) (Pow x 2)))
  | Acos => Opp (App Inv (App Sqrt (Sub (Int 1) (Pow x 2))))
  | Atan => App Inv (Add (Pow x 2) (Int 1))
  | Acot => Opp (App Inv (Add (Pow x 2) (Int 1)))
  | Sinh => App Cosh x
  | Cosh => App Sinh x
  | Tanh => Sub (Int 1) (Pow y 2)
  | Sech => Mul (Opp (App Tanh x)) y
  | Csch => Mul (Opp (App Coth x)) y
  | Coth => Opp (Pow (App Csch x) 2)
  | Asinh => App Inv (App Sqrt (Add (Pow x 2) (Int 1)))
  | Acosh => App Inv (Mul (App Sqrt (Sub x (Int 1))) (App Sqrt (Add x (Int 1))))
  | Atanh => App Inv (Sub (Int 1) (Pow x 2))
  | Sigmoid => Mul y (Sub (Int 1) y)
  | Softplus => App Sigmoid x
  | Logcosh => App Tanh x
  | Silu => Add (App Sigmoid x) (Mul y (App Sigmoid (Opp x)))
  | Log1p => App Inv (Add x (Int 1))
  | Expm1 => App Exp x
  | Log2 => App Inv (Mul x (App Log (Int 2)))
  | Log10 => App Inv (Mul x (App Log (Int 10)))
  | Exp2 => Mul (App Log (Int 2)) y
  | Abs => App Sign x
  | Sign | Heaviside => Int 0
  | Erf => Mul (Div (Int 2) (App Sqrt Pi)) (App Exp (Opp (Pow x 2)))
  | Erfc => Mul (Opp (Div (Int 2) (App Sqrt Pi))) (App Exp (Opp (Pow x 2)))
  | Erfi => Mul (Div (Int 2) (App Sqrt Pi)) (App Exp (Pow x 2))
  | Fresnels => App Sin (Div (Mul Pi (Pow x 2)) (Int 2))
  | Fresnelc => App Cos (Div (Mul Pi (Pow x 2)) (Int 2))
  end.

Definition slope2 (g : fn2) : term * term :=
  let x := Var 1 in
  let y := Var 2 in
  let z := Var 3 in
  match g with
  | Power => (Mul y (App2 Power x (Sub y (Int 1))), Mul z (App Log x))
  | Logaddexp => (App Sigmoid (Sub x y), App Sigmoid (Sub y x))
  | Hypot => (Mul x (App Inv z), Mul y (App Inv z))
  | Xlogy => (App Log y, Mul x (App Inv y))
  | Maximum => (App2 Less y x, App2 Less x y)
  | Minimum => (App2 Less x y, App2 Less y x)
  | Less => (Int 0, Int 0)
  end.

Theorem slope1_ok (f : fn) (x y : R) :
  domain1 f x -> is_derive (value1 f) x (eval (args2 x y (value1 f x)) (slope1 f)).
Proof.
  intros H; destruct f; cbv [eval args2 slope1 value1 domain1] in *;
    auto using d_exp, d_log, d_sqrt, d_sin, d_cos, d_tan, d_sec, d_csc, d_cot, d_asin, d_acos, d_atan,
      d_acot, d_sinh, d_cosh, d_tanh, d_sech, d_csch, d_coth, d_asinh, d_acosh, d_atanh, d_sigmoid,
      d_softplus, d_logcosh, d_silu, d_log1p, d_expm1, d_log2, d_log10, d_exp2, d_abs, d_sign, d_heaviside, d_erf,
      d_erfc, d_erfi, d_fresnels, d_fresnelc, d_inv.
Qed.

Theorem slope2_ok (g : fn2) (u v : R -> R) (t du dv : R) :
  domain2 g (u t) (v t) -> is_derive u t du -> is_derive v t dv ->
  is_derive (fun s => value2 g (u s) (v s)) t
    (eval (args2 (u t) (v t) (value2 g (u t) (v t))) (fst (slope2 g)) * du
     + eval (args2 (u t) (v t) (value2 g (u t) (v t))) (snd (slope2 g)) * dv).
Proof.
  intros H U V; destruct g; cbv [domain2 needs2] in H;
    try (inversion H as [|c r H1 H2]); cbv [eval args2 slope2 fst snd value2 domain1 holds] in *;
    auto using d_power, d_logaddexp, d_hypot, d_xlogy, d_max, d_min, d_less.
Qed.

(** ** Statements *)

Inductive op :=
  | OConst (q : Q)
  | OPi
  | OAdd (a b : positive)
  | OMul (a b : positive)
  | OOpp (a : positive)
  | OPow (a : positive) (n : nat)
  | OApp (f : fn) (a : positive)
  | OApp2 (g : fn2) (a b : positive).

Definition valuation := positive -> R.

Definition evalop (v : valuation) (o : op) : R :=
  match o with
  | OConst q => Q2R q
  | OPi => PI
  | OAdd a b => v a + v b
  | OMul a b => v a * v b
  | OOpp a => - v a
  | OPow a n => v a ^ n
  | OApp f a => value1 f (v a)
  | OApp2 g a b => value2 g (v a) (v b)
  end.

(** Statements, the last one first. *)
Definition code := list (positive * op).

Definition Sat (v : valuation) : code -> Prop := List.Forall (fun s => v (fst s) = evalop v (snd s)).

Definition domain_op (v : valuation) (o : op) : Prop :=
  match o with
  | OApp f a => domain1 f (v a)
  | OApp2 g a b => domain2 g (v a) (v b)
  | _ => True
  end.

Definition Dom (v : valuation) : code -> Prop := List.Forall (fun s => domain_op v (snd s)).

(** ** Fingerprints

    Values modulo a prime at one point, with arbitrary values for functions. Nothing rests on them: they say
    which values are worth comparing, and which of x and −x is called negative. *)

Definition prime : Z := 2305843009213693951.  (* 2^61 - 1 *)

Definition fn_number (f : fn) : Z :=
  match f with
  | Inv => 1 | Exp => 2 | Log => 3 | Sqrt => 4 | Sin => 5 | Cos => 6 | Tan => 7 | Sec => 8 | Csc => 9
  | Cot => 10 | Asin => 11 | Acos => 12 | Atan => 13 | Acot => 14 | Sinh => 15 | Cosh => 16 | Tanh => 17
  | Sech => 18 | Csch => 19 | Coth => 20 | Asinh => 21 | Acosh => 22 | Atanh => 23 | Sigmoid => 24
  | Softplus => 25 | Logcosh => 26 | Silu => 27 | Log1p => 28 | Expm1 => 29 | Log2 => 30 | Log10 => 31
  | Exp2 => 32 | Abs => 33 | Sign => 34 | Erf => 35 | Erfc => 36 | Erfi => 37 | Fresnels => 38
  | Fresnelc => 39 | Heaviside => 40
  end%Z.

Definition fn2_number (g : fn2) : Z :=
  match g with Power => 51 | Logaddexp => 52 | Hypot => 53 | Xlogy => 54
  | Maximum => 55 | Minimum => 56 | Less => 57 end%Z.

Definition fold (z : Z) : Z :=
  let y := (Z.land z prime + Z.shiftr z 61)%Z in if (prime <=? y)%Z then (y - prime)%Z else y.

Definition madd (a b : Z) : Z := let c := (a + b)%Z in if (prime <=? c)%Z then (c - prime)%Z else c.
Definition mneg (a : Z) : Z := match a with Z0 => Z0 | _ => (prime - a)%Z end.
Definition mmul (a b : Z) : Z := fold (a * b).

Definition mix (a b : Z) : Z := let x := madd a (fold (b * 982451653)) in mmul (mmul x x) (madd x 15485863%Z).

Fixpoint mpow (a : Z) (n : positive) : Z :=
  match n with
  | xH => a
  | xO m => let b := mpow a m in mmul b b
  | xI m => let b := mpow a m in mmul (mmul b b) a
  end.

(** The inverse by Euclid's algorithm; 0 for 0. *)
Fixpoint euclid (fuel : nat) (a b x y : Z) : Z :=
  match fuel, b with
  | O, _ | _, Z0 => x
  | S fuel, _ => let (q, r) := Z.div_eucl a b in euclid fuel b r y (x - q * y)%Z
  end.

Definition minv (a : Z) : Z := (euclid 100 prime a 0 1 mod prime)%Z.

Definition print_of (prints : M.t Z) (k : positive) : Z :=
  match M.find k prints with Some z => z | None => mix (Zpos k * 2654435761)%Z 77 end.

Definition negative (a : Z) : bool := (prime <? 2 * a)%Z.

(** exp(a) is a square and 1/exp(−a), so that tanh and sech of a/2 are rational in its root. *)
Definition root_of_exp (a : Z) : Z := if negative a then minv (mix (mneg a) 2) else mix a 2.

Definition fingerprint (prints : M.t Z) (o : op) : Z :=
  let p := print_of prints in
  match o with
  | OConst q =>
    let n := (Qnum q mod prime)%Z in match Qden q with xH => n | d => mmul n (minv (Zpos d mod prime)%Z) end
  | OPi => 314159265358979
  | OAdd a b => madd (p a) (p b)
  | OMul a b => mmul (p a) (p b)
  | OOpp a => mneg (p a)
  | OPow a n => match n with O => 1 | _ => mpow (p a) (Pos.of_nat n) end
  | OApp Inv a => minv (p a)
  | OApp Exp a => let u := root_of_exp (p a) in mmul u u
  | OApp Tanh a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in
    let e := mmul u u in mmul (madd 1 (mneg e)) (minv (madd 1 e))
  | OApp Sech a =>
    let u := root_of_exp (mneg (madd (p a) (p a))) in mmul (madd u u) (minv (madd 1 (mmul u u)))
  | OApp f a => mix (p a) (fn_number f)
  | OApp2 g a b => mix (mix (p a) (fn2_number g)) (p b)
  end%Z.

(** [tanhs] maps some values to the number of the statement of their tanh. *)
Record state := State {
  next : positive; written : code; table : M.t op; prints : M.t Z; tanhs : M.t positive
}.

Definition table_ok (s : state) : Prop :=
  (forall k o, M.find k (table s) = Some o -> In (k, o) (written s)) /\
  (forall b h, M.find b (tanhs s) = Some h -> forall v, Sat v (written s) -> v h = tanh (v b)).

Definition emit (o : op) (s : state) : positive * state :=
  let k := next s in
  (k, State (Pos.succ k) ((k, o) :: written s) (M.add k o (table s))
        (M.add k (fingerprint (prints s) o) (prints s)) (tanhs s)).

Arguments emit : simpl never.

(** The guarantee of each function that generates code: it only appends statements; a valuation that satisfies the statements
    satisfies the claim; and the conditions of the new statements hold where [need] does. *)
Record gen (s s' : state) (need claim : valuation -> Prop) : Prop := Gen {
  gen_table : table_ok s -> table_ok s';
  gen_ext : exists e, written s' = e ++ written s;
  gen_claim : table_ok s -> forall v, Sat v (written s') -> claim v;
  gen_dom : table_ok s -> forall v, Sat v (written s') -> Dom v (written s) -> need v -> Dom v (written s')
}.

Lemma gen_here s (need claim : valuation -> Prop) :
  (table_ok s -> forall v, Sat v (written s) -> claim v) -> gen s s need claim.
Proof. intros H; split; auto. now exists []. Qed.

Lemma gen_then s s1 s2 need1 need2 claim1 claim2 :
  gen s s1 need1 claim1 -> gen s1 s2 need2 claim2 ->
  gen s s2 (fun v => need1 v /\ (claim1 v -> need2 v)) (fun v => claim1 v /\ claim2 v).
Proof.
  intros [T1 [e1 E1] C1 D1] [T2 [e2 E2] C2 D2].
  assert (S1 : forall v, Sat v (written s2) -> Sat v (written s1)).
  { intros v H. unfold Sat in *. rewrite E2 in H. apply List.Forall_app in H. apply H. }
  split; auto.
  - exists (e2 ++ e1). now rewrite E2, E1, app_assoc.
  - intros T v H D [N1 N2]. apply D2; auto.
Qed.

Lemma gen_weaken s s' (need need' claim claim' : valuation -> Prop) :
  gen s s' need claim ->
  (forall v, need' v -> need v) -> (table_ok s -> forall v, Sat v (written s') -> claim v -> claim' v) ->
  gen s s' need' claim'.
Proof. intros [T E C D] N W; split; auto. Qed.

Lemma gen_emit o s k s' :
  emit o s = (k, s') -> gen s s' (fun v => domain_op v o) (fun v => v k = evalop v o).
Proof.
  unfold emit. intros E; inversion E; subst; clear E. split; simpl.
  - intros [T H]. split; simpl.
    + intros j p. destruct (Pos.eq_dec j (next s)) as [-> | N].
      * rewrite M.gss. intros F; inversion F. now left.
      * rewrite M.gso by assumption. intros F. right. now apply T.
    + intros b h F v S. apply H; [exact F|]. now inversion S.
  - now exists [(next s, o)].
  - intros _ v H. now inversion H.
  - intros _ v H D N. now constructor.
Qed.

Lemma in_table s k o v : table_ok s -> Sat v (written s) -> M.find k (table s) = Some o -> v k = evalop v o.
Proof.
  intros [T _] H F. apply T in F. unfold Sat in H. rewrite List.Forall_forall in H. apply (H (k, o) F).
Qed.

Definition is_one (t : M.t op) (k : positive) : bool :=
  match M.find k t with Some (OConst q) => Qeq_bool q 1 | _ => false end.

(** The exponential e if k is 1/e; otherwise none. *)
Definition inverse_exp (t : M.t op) (k : positive) : option positive :=
  match M.find k t with
  | Some (OApp Inv e) => match M.find e t with Some (OApp Exp _) => Some e | _ => None end
  | _ => None
  end.

Definition one_and_inverse_exp (t : M.t op) (b c : positive) : option positive :=
  if is_one t b then inverse_exp t c else if is_one t c then inverse_exp t b else None.

(** The inverse of a product is the product of the inverses, recursively, down to sums and functions;
    1/(1 + 1/e) is e/(1 + e) for an exponential e. *)
Fixpoint invert (fuel : nat) (a : positive) (s : state) : positive * state :=
  match fuel with
  | O => emit (OApp Inv a) s
  | S fuel =>
    match M.find a (table s) with
    | Some (OConst q) => emit (OConst (/ q)) s
    | Some (OMul b c) =>
      let (i, s) := invert fuel b s in let (j, s) := invert fuel c s in emit (OMul i j) s
    | Some (OPow b (S n)) => let (i, s) := invert fuel b s in emit (OPow i (S n)) s
    | Some (OOpp b) => let (i, s) := invert fuel b s in emit (OOpp i) s
    | Some (OApp Inv b) => (b, s)
    | Some (OAdd b c) =>
      match one_and_inverse_exp (table s) b c with
      | None => emit (OApp Inv a) s
      | Some e =>
        let (i, s) := emit (OConst 1) s in
        let (d, s) := emit (OAdd i e) s in
        let (w, s) := emit (OApp Inv d) s in emit (OMul e w) s
      end
    | _ => emit (OApp Inv a) s
    end
  end.

Lemma one_and_inverse_exp_ok s b c e v : table_ok s -> Sat v (written s) ->
  one_and_inverse_exp (table s) b c = Some e -> 0 < v e /\ v b + v c = 1 + / v e.
Proof.
  intros T S.
  assert (O : forall k, is_one (table s) k = true -> v k = 1).
  { unfold is_one. intros k H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
    destruct o; try discriminate. rewrite (in_table s k _ v T S F). simpl. apply Qeq_true in H. rewrite H.
    apply RMicromega.Q2R_1. }
  assert (X : forall k, inverse_exp (table s) k = Some e -> 0 < v e /\ v k = / v e).
  { unfold inverse_exp. intros k H. destruct (M.find k (table s)) as [o|] eqn:F; [|discriminate].
    destruct o as [| | | | | |f x|]; try discriminate. destruct f; try discriminate.
    destruct (M.find x (table s)) as [o|] eqn:G; [|discriminate].
    destruct o as [| | | | | |f y|]; try discriminate. destruct f; try discriminate. inversion H; subst.
    rewrite (in_table s k _ v T S F). split; [|reflexivity]. rewrite (in_table s e _ v T S G). apply exp_pos. }
  unfold one_and_inverse_exp. destruct (is_one (table s) b) eqn:B.
  - intros H. destruct (X c H) as [P Q]. split; [exact P|]. now rewrite (O b B), Q.
  - destruct (is_one (table s) c) eqn:C; [|discriminate]. intros H. destruct (X b H) as [P Q].
    split; [exact P|]. rewrite (O c C), Q. ring.
Qed.

Lemma gen_inv_plain a s k s' :
  emit (OApp Inv a) s = (k, s') -> gen s s' (fun v => v a <> 0) (fun v => v k = / v a).
Proof. intros E. exact (gen_emit _ _ _ _ E). Qed.

Lemma Sat_ext v s s' : (exists e, written s' = e ++ written s) -> Sat v (written s') -> Sat v (written s).
Proof. intros [e E] H. unfold Sat in *. rewrite E in H. apply List.Forall_app in H. apply H. Qed.

Lemma gen_invert fuel : forall a s k s', invert fuel a s = (k, s') ->
  gen s s' (fun v => v a <> 0) (fun v => v k = / v a).
Proof.
  induction fuel as [|fuel IH]; intros a s k s'; cbn [invert]; [apply gen_inv_plain|].
  destruct (M.find a (table s)) as [o|] eqn:F; [|apply gen_inv_plain].
  assert (L : forall v, table_ok s -> Sat v (written s) -> v a = evalop v o) by (intros; eapply in_table; eauto).
  destruct o as [q| |b c|b c|b|b [|n]|f b|g b c]; try apply gen_inv_plain.
  - intros E. apply gen_emit in E. destruct E as [T X C D]. split; auto.
    + intros T0 v S. rewrite (C T0 v S), (L v T0 (Sat_ext v _ _ X S)). simpl. rewrite Q2R_inv_ext.
      destruct (Qeq_bool q 0) eqn:Z; [|reflexivity]. apply Qeq_true in Z. now rewrite Z, Q2R_0, Rinv_0.
    + intros T0 v S D0 N. now apply D.
  - destruct (one_and_inverse_exp (table s) b c) as [x|] eqn:Q; [|apply gen_inv_plain].
    destruct (emit (OConst 1) s) as [i s1] eqn:E1. destruct (emit (OAdd i x) s1) as [d s2] eqn:E2.
    destruct (emit (OApp Inv d) s2) as [w s3] eqn:E3. intros E4.
    destruct (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
      (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E3) (gen_emit _ _ _ _ E4)))) as [T X C D].
    assert (P : forall v, table_ok s -> Sat v (written s') -> 0 < v x /\ v b + v c = 1 + / v x).
    { intros v T0 S. apply (one_and_inverse_exp_ok s b c x v T0 (Sat_ext v _ _ X S) Q). }
    split; auto.
    + intros T0 v S. destruct (C T0 v S) as (C1 & C2 & C3 & C4). destruct (P v T0 S) as [P1 P2].
      rewrite C4. simpl. rewrite C3. simpl. rewrite C2. simpl. rewrite C1. simpl.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. rewrite P2, RMicromega.Q2R_1. field. split; lra.
    + intros T0 v S D0 N. destruct (P v T0 S) as [P1 P2]. apply D; auto.
      cbn [domain_op evalop domain1]. split; [exact I|]. intros C1. split; [exact I|]. intros C2.
      split; [|intros; exact I]. rewrite C2, C1, RMicromega.Q2R_1. lra.
  - destruct (invert fuel b s) as [i s1] eqn:E1. destruct (invert fuel c s1) as [j s2] eqn:E2. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (IH _ _ _ _ E2))
      (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [[C1 C2] C3]. rewrite C3. simpl. rewrite C1, C2.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. symmetry. apply Rinv_mult.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. simpl in N.
      apply D; auto.
      assert (v b <> 0) by (intros Z; apply N; rewrite Z; ring).
      assert (v c <> 0) by (intros Z; apply N; rewrite Z; ring). simpl. tauto.
  - destruct (invert fuel b s) as [i s1] eqn:E1. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [C1 C3]. rewrite C3. simpl. rewrite C1.
      rewrite (L v T0 (Sat_ext v _ _ X S)). simpl. symmetry. apply Rinv_opp.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. simpl in N.
      apply D; auto. assert (v b <> 0) by (intros Z; apply N; rewrite Z; ring). simpl. tauto.
  - destruct (invert fuel b s) as [i s1] eqn:E1. intros E3.
    destruct (gen_then _ _ _ _ _ _ _ (IH _ _ _ _ E1) (gen_emit _ _ _ _ E3)) as [T X C D]. split; auto.
    + intros T0 v S. destruct (C T0 v S) as [C1 C3]. rewrite C3. cbn [evalop]. rewrite C1.
      rewrite (L v T0 (Sat_ext v _ _ X S)). cbn [evalop]. apply pow_inv.
    + intros T0 v S D0 N. rewrite (L v T0 (Sat_ext v _ _ X S)) in N. cbn [evalop] in N.
      apply D; auto. assert (v b <> 0) by (intros Z; apply N; rewrite Z; simpl; ring). simpl. tauto.
  - destruct f; try apply gen_inv_plain. intros E; inversion E; subst. apply gen_here.
    intros T v S. rewrite (L v T S). simpl. symmetry. apply Rinv_inv.
Qed.

Ltac step_gen :=
  match goal with
  | |- (let (_, _) := ?e in _) = _ -> _ => let E := fresh "E" in destruct e as [? ?] eqn:E
  | |- context [let (_, _) := ?e in _] => let E := fresh "E" in destruct e as [? ?] eqn:E
  end.

(** ** Terms to statements *)

Definition FUEL : nat := 50.

Opaque invert.

Definition half : Q := 1 # 2.

Lemma half_ok : Q2R half = / 2.
Proof. unfold half, Q2R. simpl. lra. Qed.

(** −a; if a is −b, then b. *)
Definition opposite (o : option op) : option positive :=
  match o with Some (OOpp b) => Some b | _ => None end.

Definition negate (a : positive) (s : state) : positive * state :=
  match opposite (M.find a (table s)) with Some b => (b, s) | None => emit (OOpp a) s end.

Lemma gen_negate a s k s' : negate a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = - v a).
Proof.
  unfold negate. destruct (opposite _) as [b|] eqn:Q.
  - destruct (M.find a (table s)) as [o|] eqn:F; [|discriminate]. destruct o; try discriminate.
    inversion Q; subst; clear Q. intros E; inversion E; subst. apply gen_here. intros T v S.
    rewrite (in_table s' a _ v T S F). simpl. ring.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

(** exp(a), as 1/exp(−a) if the fingerprint of a counts as [negative]. *)
Definition exponential (a : positive) (s : state) : positive * state :=
  if negative (print_of (prints s) a) then
    let (m, s) := negate a s in
    let (e, s) := emit (OApp Exp m) s in emit (OApp Inv e) s
  else emit (OApp Exp a) s.

Lemma gen_exponential a s k s' :
  exponential a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = exp (v a)).
Proof.
  unfold exponential. destruct (negative _).
  - repeat step_gen. intros E2.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_negate _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
      (gen_emit _ _ _ _ E2))).
    apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op value1 domain1].
    + intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. rewrite C2. apply Rgt_not_eq, exp_pos.
    + intros _ v _ (C1 & C2 & C3). rewrite C3, C2, C1, exp_Ropp. apply Rinv_inv.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

(** σ(a) is 1/(1 + exp(−a)). *)
Definition logistic (a : positive) (s : state) : positive * state :=
  let (m, s) := negate a s in
  let (e, s) := exponential m s in
  let (i, s) := emit (OConst 1) s in
  let (d, s) := emit (OAdd i e) s in invert FUEL d s.

Lemma gen_logistic a s k s' :
  logistic a s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = sigmoid (v a)).
Proof.
  unfold logistic. repeat step_gen. intros E4.
  assert (G := gen_then _ _ _ _ _ _ _ (gen_negate _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_exponential _ _ _ _ E0)
    (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
    (gen_invert _ _ _ _ _ E4))))).
  apply (gen_weaken _ _ _ _ _ _ G); cbn [evalop domain_op value1 domain1].
  - intros v _. split; [exact I|]. intros C1. split; [exact I|]. intros C2. split; [exact I|]. intros C3.
    split; [exact I|]. intros C4. rewrite C4, C3, C2, RMicromega.Q2R_1. generalize (exp_pos (v p)). lra.
  - intros T v S (C1 & C2 & C3 & C4 & C5). rewrite C5, C4, C3, C2, C1, RMicromega.Q2R_1. reflexivity.
Qed.

(** tanh(a/2) is 2 σ(a) − 1. *)
Definition halved (t : M.t op) (b : positive) : option positive :=
  match M.find b t with
  | Some (OMul a h) =>
    match M.find h t with
    | Some (OConst q) => if Qeq_bool q half then Some a else None
    | _ => None
    end
  | _ => None
  end.

Definition hyperbolic (b : positive) (s : state) : positive * state :=
  match halved (table s) b with
  | None => emit (OApp Tanh b) s
  | Some a =>
    let (w, s) := logistic a s in
    let (c, s) := emit (OConst 2) s in
    let (d, s) := emit (OMul c w) s in
    let (i, s) := emit (OConst (-1)) s in emit (OAdd d i) s
  end.

Lemma halved_ok s b a v : table_ok s -> Sat v (written s) -> halved (table s) b = Some a -> v b = v a * / 2.
Proof.
  unfold halved. intros T S H. destruct (M.find b (table s)) as [o|] eqn:F; [|discriminate].
  destruct o as [| | |x y| | | |]; try discriminate. destruct (M.find y (table s)) as [o|] eqn:F2; [|discriminate].
  destruct o as [q| | | | | | |]; try discriminate. destruct (Qeq_bool q half) eqn:E; [|discriminate].
  inversion H; subst. rewrite (in_table s b _ v T S F). simpl. rewrite (in_table s y _ v T S F2). simpl.
  apply Qeq_true in E. now rewrite E, half_ok.
Qed.

Lemma gen_hyperbolic b s k s' :
  hyperbolic b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = tanh (v b)).
Proof.
  unfold hyperbolic. destruct (halved (table s) b) as [a|] eqn:H.
  - repeat step_gen. intros E4.
    assert (G := gen_then _ _ _ _ _ _ _ (gen_logistic _ _ _ _ E) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E0)
      (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E1) (gen_then _ _ _ _ _ _ _ (gen_emit _ _ _ _ E2)
      (gen_emit _ _ _ _ E4))))).
    assert (X := gen_ext _ _ _ _ G).
    apply (gen_weaken _ _ _ _ _ _ G); [simpl; tauto|].
    intros T v S (C1 & C2 & C3 & C4 & C5). rewrite C5. cbn [evalop]. rewrite C4, C3. cbn [evalop].
    rewrite C2, C1. cbn [evalop]. rewrite (halved_ok s b a v T (Sat_ext v _ _ X S) H), tanh_half.
    unfold Q2R. simpl. field.
  - intros E. apply gen_emit in E. apply (gen_weaken _ _ _ _ _ _ E); simpl; auto.
Qed.

(** With each sech, the tanh of its argument is computed, and the number of its statement is recorded. *)
Definition remember (b h : positive) (s : state) : state :=
  State (next s) (written s) (table s) (prints s) (M.add b h (tanhs s)).

Definition with_tanh (b : positive) (s : state) : positive * state :=
  let (h, s) := hyperbolic b s in emit (OApp Sech b) (remember b h s).

Lemma gen_with_tanh b s k s' :
  with_tanh b s = (k, s') -> gen s s' (fun _ => True) (fun v => v k = sech (v b)).
Proof.
  unfold with_tanh. destruct (hyperbolic b s) as [h s1] eqn:E. apply gen_hyperbolic in E.
  destruct E as [T X C D]. intros E1. apply gen_emit in E1. destruct E1 as [T1 X1 C1 D1].
  assert (R : table_ok s -> table_ok (remember b h s1)).
  { intros T0. destruct (T T0) as [A B]. split; [exact A|]. unfold remember; cbn [tanhs written].
    intros j m F v S. destruct (Pos.eq_dec j b) as [->|N].
    - rewrite M.gss in F. inversion F; subst. now apply C.
    - rewrite M.gso in F by assumption. now apply (B j m F v S). }
  split.
  - auto.
  - destruct X as [e E], X1 as [e1 E1]. exists (e1 ++ e). rewrite E1. unfold remember; cbn [written].
    now rewrite E, app_assoc.
  - intros T0 v S. now apply (C1 (R T0) v S).
  - intros T0 v S D0 _. apply D1; auto; [|exact I]. apply D; auto.
    eapply (Sat_ext v (remember b h s1) s'); eauto.
Qed.

Definition apply1 (f : fn) (a : positive) (s : state) : positive * state :=
  match f with
  | Inv => invert FUEL a s
  | Exp => exponential a s
  | Sigmoid => logistic a s
  | Tanh => hyperbolic a s
  | Sech => with_tanh a s
  | _ => emit (OApp f a) s
  end.

Lemma gen_apply1 f a s k s' :
  apply1 f a s = (k, s') -> gen s s' (fun v => domain1 f (v a)) (fun v => v k = value1 f (v a)).
Proof.
  intros E. destruct f; cbn [apply1] in E;
    lazymatch type of E with
    | invert _ _ _ = _ => exact (gen_invert _ _ _ _ _ E)
    | exponential _ _ = _ => apply gen_exponential in E; exact (gen_weaken _ _ _ _ _ _ E (fun _ _ => I) (fun _ _ _ c => c))
    | logistic _ _ = _ => apply gen_logistic in E; exact (gen_weaken _ _ _ _ _ _ E (fun _ _ => I) (fun _ _ _ c => c))
    | hyperbolic _ _ = _ => apply gen_hyperbolic in E; exact (gen_weaken _ _ _ _ _ _ E (fun _ _ => I) (fun _ _ _ c => c))
    | with_tanh _ _ = _ => apply gen_with_tanh in E; exact (gen_weaken _ _ _ _ _ _ E (fun _ _ => I) (fun _ _ _ c => c))
    | _ => exact (gen_emit _ _ _ _ E)
    end.
Qed.

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
  | App2 g a b => let (i, s) := compile rho a s in let (j, s) := compile rho b s in emit (OApp2 g i j) s
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
    assert (G := gen_then _ _ _ _ _ _ _ (IHa _ _ _ E) (gen_then _ _ _ _ _ _ _ (IHb _ _ _ E0) (gen_emit _ _ _ _ E3))).
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
