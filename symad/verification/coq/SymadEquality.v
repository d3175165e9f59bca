(** Equal values in one program: local identities in a ring, found and proved by computation.

    Values that seem equal, by a fingerprint modulo a prime, are compared as polynomials in values before
    them. What the fingerprint says is never trusted: [classes] relates only values whose polynomials have
    one normal form, and [classes_ok] proves that these are equal. *)

Require Import Reals Lra Lia List Bool ZArith QArith Qreals RMicromega Ring PArith FMapPositive.
From Coq.micromega Require Import EnvRing.
From Coquelicot Require Import Coquelicot.
Require Import SymadFunctions SymadPrograms.
Import ListNotations.
Open Scope R_scope.

(** ** Polynomials with rational coefficients *)

Definition qadd (a b : Q) : Q := Qred (a + b).
Definition qmul (a b : Q) : Q := Qred (a * b).
Definition qsub (a b : Q) : Q := Qred (a - b).

Definition poly := PExpr Q.
Definition normal : poly -> Pol Q := norm_aux 0%Q 1%Q qadd qmul qsub Qopp Qeq_bool.
Definition same_normal : Pol Q -> Pol Q -> bool := Peq Qeq_bool.
Definition peval (v : valuation) : poly -> R :=
  PEeval Rplus Rmult Rminus Ropp Q2R N.to_nat pow v.

Lemma Q2R_red q : Q2R (Qred q) = Q2R q.
Proof. apply Qeq_eqR, Qred_correct. Qed.

Lemma rationals : ring_morph 0 1 Rplus Rmult Rminus Ropp eq 0%Q 1%Q qadd qmul qsub Qopp Qeq_bool Q2R.
Proof.
  constructor; intros; unfold qadd, qmul, qsub; rewrite ?Q2R_red.
  - apply Q2R_0.
  - apply Q2R_1.
  - apply Q2R_plus.
  - apply Q2R_minus.
  - apply Q2R_mult.
  - apply Q2R_opp.
  - now apply Qeq_true.
Qed.

Lemma same_normal_ok (a b : poly) v : same_normal (normal a) (normal b) = true -> peval v a = peval v b.
Proof.
  intros H. unfold peval, normal in *.
  rewrite (norm_aux_spec Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory)
    rationals R_power_theory v a).
  rewrite (norm_aux_spec Rset (Eq_ext Rplus Rmult Ropp) (Rth_ARth Rset (Eq_ext Rplus Rmult Ropp) RTheory)
    rationals R_power_theory v b).
  apply (Peq_ok Rset (Eq_ext Rplus Rmult Ropp) rationals _ _ H).
Qed.

(** ** Values as polynomials *)

Definition rep (classes : M.t positive) (k : positive) : positive :=
  match M.find k classes with Some r => r | None => k end.

Definition is_const (t : M.t op) (k : positive) : bool :=
  match M.find k t with Some (OConst _) => true | _ => false end.

(** A value as a polynomial: sums and products are opened, as long as [level] allows to change from one to
    the other; [inside] says where we are: nowhere, in a sum, in a product. *)
Inductive place := Nowhere | InSum | InProduct.

Fixpoint expand (t : M.t op) (classes : M.t positive) (fuel level : nat) (inside : place) (k : positive)
    : poly :=
  let k := rep classes k in
  match fuel with
  | O => PEX k
  | S fuel =>
    let sum f :=
      match inside, level with
      | InSum, _ => f level
      | _, S l => f l
      | _, O => PEX k
      end in
    let product f :=
      match inside, level with
      | InProduct, _ => f level
      | _, S l => f l
      | _, O => PEX k
      end in
    match M.find k t with
    | Some (OConst q) => PEc q
    | Some (OAdd a b) =>
      sum (fun l => PEadd (expand t classes fuel l InSum a) (expand t classes fuel l InSum b))
    | Some (OOpp a) => PEopp (expand t classes fuel level inside a)
    | Some (OMul a b) =>
      if is_const t (rep classes a) || is_const t (rep classes b)
      then PEmul (expand t classes fuel level inside a) (expand t classes fuel level inside b)
      else product (fun l => PEmul (expand t classes fuel l InProduct a) (expand t classes fuel l InProduct b))
    | Some (OPow a n) => product (fun l => PEpow (expand t classes fuel l InProduct a) (N.of_nat n))
    | _ => PEX k
    end
  end.

Definition sound (t : M.t op) (v : valuation) : Prop := forall k o, M.find k t = Some o -> v k = evalop v o.
Definition respected (v : valuation) (classes : M.t positive) : Prop := forall k, v (rep classes k) = v k.

Lemma expand_ok t v classes : sound t v -> respected v classes ->
  forall fuel level inside k, peval v (expand t classes fuel level inside k) = v k.
Proof.
  intros T C. induction fuel as [|fuel IH]; intros level inside k; [apply C|].
  cbn [expand]. rewrite <- (C k). set (j := rep classes k).
  destruct (M.find j t) as [o|] eqn:F; [|reflexivity]. apply T in F.
  destruct o as [q| |a b|a b|a|a n|f a|g a b]; try reflexivity; rewrite F; cbn [evalop].
  - reflexivity.
  - destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH; try reflexivity; exact F.
  - destruct (is_const t (rep classes a) || is_const t (rep classes b)).
    + unfold peval; cbn [PEeval]; fold (peval v). now rewrite !IH.
    + destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH; try reflexivity;
        exact F.
  - unfold peval; cbn [PEeval]; fold (peval v). now rewrite IH.
  - destruct inside, level; unfold peval; cbn [PEeval]; fold (peval v); rewrite ?IH, ?Nnat.Nat2N.id;
      try reflexivity; exact F.
Qed.

(** A bound of the number of terms of the normal form. *)
Fixpoint terms_of (p : poly) : N :=
  match p with
  | PEc _ | PEX _ => 1
  | PEadd a b | PEsub a b => terms_of a + terms_of b
  | PEmul a b => terms_of a * terms_of b
  | PEopp a => terms_of a
  | PEpow a n => N.pow (terms_of a) (N.min n 30)
  end%N.

Definition MOST_TERMS : N := 3000.
Definition CHAIN : nat := N.to_nat 3000.

Definition same_at (t : M.t op) (classes : M.t positive) (j k : positive) (level : nat) : bool :=
  let a := expand t classes CHAIN level Nowhere j in
  let b := expand t classes CHAIN level Nowhere k in
  if (terms_of a <=? MOST_TERMS)%N && (terms_of b <=? MOST_TERMS)%N
  then same_normal (normal a) (normal b) else false.

Definition fn_eq (f g : fn) : {f = g} + {f <> g}.
Proof. decide equality. Defined.
Definition fn2_eq (f g : fn2) : {f = g} + {f <> g}.
Proof. decide equality. Defined.

Definition same_call (t : M.t op) (classes : M.t positive) (j k : positive) : bool :=
  match M.find j t, M.find k t with
  | Some (OApp f a), Some (OApp g b) =>
    if fn_eq f g then Pos.eqb (rep classes a) (rep classes b) else false
  | Some (OApp2 f a a'), Some (OApp2 g b b') =>
    if fn2_eq f g then Pos.eqb (rep classes a) (rep classes b) && Pos.eqb (rep classes a') (rep classes b')
    else false
  | Some (OAdd a a'), Some (OAdd b b') | Some (OMul a a'), Some (OMul b b') =>
    Pos.eqb (rep classes a) (rep classes b) && Pos.eqb (rep classes a') (rep classes b')
  | Some OPi, Some OPi => true
  | _, _ => false
  end.

Definition same (t : M.t op) (classes : M.t positive) (j k : positive) : bool :=
  same_call t classes j k || same_at t classes j k 1 || same_at t classes j k 2 || same_at t classes j k 3
  || same_at t classes j k 4.

Lemma same_at_ok t v classes j k level : sound t v -> respected v classes ->
  same_at t classes j k level = true -> v j = v k.
Proof.
  unfold same_at. intros T C H. destruct (_ && _); [|discriminate].
  apply (same_normal_ok _ _ v) in H. now rewrite !expand_ok in H.
Qed.

Lemma same_call_ok t v classes j k : sound t v -> respected v classes ->
  same_call t classes j k = true -> v j = v k.
Proof.
  unfold same_call. intros T C H.
  assert (R : forall a b, Pos.eqb (rep classes a) (rep classes b) = true -> v a = v b).
  { intros a b E. apply Pos.eqb_eq in E. rewrite <- (C a), <- (C b). now rewrite E. }
  destruct (M.find j t) as [o|] eqn:J; [|discriminate]. apply T in J.
  destruct (M.find k t) as [p|] eqn:K; [|destruct o; discriminate]. apply T in K.
  rewrite J, K. destruct o, p; try discriminate; cbn [evalop]; try reflexivity.
  - apply andb_prop in H. destruct H as [A B]. now rewrite (R _ _ A), (R _ _ B).
  - apply andb_prop in H. destruct H as [A B]. now rewrite (R _ _ A), (R _ _ B).
  - destruct (fn_eq f f0) as [->|]; [|discriminate]. now rewrite (R _ _ H).
  - destruct (fn2_eq g g0) as [->|]; [|discriminate]. apply andb_prop in H. destruct H as [A B].
    now rewrite (R _ _ A), (R _ _ B).
Qed.

Lemma same_ok t v classes j k : sound t v -> respected v classes -> same t classes j k = true -> v j = v k.
Proof.
  unfold same. intros T C H. repeat (apply orb_prop in H; destruct H as [H|H]);
    eauto using same_at_ok, same_call_ok.
Qed.

(** ** Fingerprints *)

Definition prime : Z := 2305843009213693951.  (* 2^61 - 1 *)

Definition fn_number (f : fn) : Z :=
  match f with
  | Inv => 1 | Exp => 2 | Log => 3 | Sqrt => 4 | Sin => 5 | Cos => 6 | Tan => 7 | Sec => 8 | Csc => 9
  | Cot => 10 | Asin => 11 | Acos => 12 | Atan => 13 | Acot => 14 | Sinh => 15 | Cosh => 16 | Tanh => 17
  | Sech => 18 | Csch => 19 | Coth => 20 | Asinh => 21 | Acosh => 22 | Atanh => 23 | Sigmoid => 24
  | Softplus => 25 | Logcosh => 26 | Silu => 27 | Log1p => 28 | Expm1 => 29 | Log2 => 30 | Log10 => 31
  | Exp2 => 32 | Abs => 33 | Sign => 34 | Erf => 35 | Erfc => 36 | Erfi => 37 | Fresnels => 38
  | Fresnelc => 39
  end%Z.

Definition fn2_number (g : fn2) : Z :=
  match g with Power => 51 | Logaddexp => 52 | Hypot => 53 | Xlogy => 54 end%Z.

Definition mix (a b : Z) : Z :=
  let x := ((a + 982451653 * b) mod prime)%Z in ((x * x mod prime) * (x + 15485863) mod prime)%Z.

Fixpoint power_mod (a : Z) (n : positive) : Z :=
  match n with
  | xH => a
  | xO m => let b := power_mod a m in (b * b mod prime)%Z
  | xI m => let b := power_mod a m in ((b * b mod prime) * a mod prime)%Z
  end.

Definition print_of (prints : M.t Z) (k : positive) : Z :=
  match M.find k prints with Some z => z | None => mix (Zpos k * 2654435761) 77 end.

Definition fingerprint (prints : M.t Z) (o : op) : Z :=
  let p := print_of prints in
  match o with
  | OConst q =>
    match Qden q with
    | xH => (Qnum q mod prime)%Z
    | d => ((Qnum q mod prime) * power_mod (Zpos d mod prime) (Z.to_pos (prime - 2)) mod prime)%Z
    end
  | OPi => 314159265358979
  | OAdd a b => ((p a + p b) mod prime)%Z
  | OMul a b => ((p a * p b) mod prime)%Z
  | OOpp a => ((- p a) mod prime)%Z
  | OPow a n => match n with O => 1 | _ => power_mod (p a) (Pos.of_nat n) end
  | OApp f a => mix (p a) (fn_number f)
  | OApp2 g a b => mix (mix (p a) (fn2_number g)) (p b)
  end.

Definition key (z : Z) : positive := match z with Zpos p => Pos.succ p | _ => 1%positive end.

(** All statements in order: the class of each. *)
Fixpoint classify (t : M.t op) (c : code) (prints : M.t Z) (seen classes : M.t positive) : M.t positive :=
  match c with
  | [] => classes
  | (k, o) :: c =>
    let z := fingerprint prints o in
    let prints := M.add k z prints in
    match M.find (key z) seen with
    | None => classify t c prints (M.add (key z) k seen) classes
    | Some r =>
      if Pos.eqb (rep classes r) r && negb (Pos.eqb k r) && same t classes k r
      then classify t c prints seen (M.add k r classes)
      else classify t c prints seen classes
    end
  end.

Fixpoint seen_inputs (n : nat) (k : positive) (seen : M.t positive) : M.t positive :=
  match n with
  | O => seen
  | S n => seen_inputs n (Pos.succ k) (M.add (key (print_of (M.empty Z) k)) k seen)
  end.

Definition classes_of (t : M.t op) (c : code) (inputs : nat) : M.t positive :=
  classify t (rev' c) (M.empty Z) (seen_inputs inputs 1 (M.empty positive)) (M.empty positive).

Theorem classify_ok t v : sound t v -> forall c prints seen classes,
  respected v classes -> respected v (classify t c prints seen classes).
Proof.
  intros T. induction c as [|[k o] c IH]; intros prints seen classes C; [exact C|].
  cbn [classify]. destruct (M.find _ seen) as [r|]; [|now apply IH].
  destruct (Pos.eqb (rep classes r) r && negb (Pos.eqb k r) && same t classes k r) eqn:E; [|now apply IH].
  apply IH. apply andb_prop in E. destruct E as [_ E]. apply (same_ok t v classes k r T C) in E.
  intros j. unfold rep. destruct (Pos.eq_dec j k) as [->|N].
  - rewrite M.gss. now symmetry.
  - rewrite M.gso by assumption. apply C.
Qed.

Theorem classes_ok t v c n : sound t v -> respected v (classes_of t c n).
Proof. intros T. apply classify_ok; auto. intros j. unfold rep. now rewrite M.gempty. Qed.
